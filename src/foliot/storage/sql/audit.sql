-- name: append
-- What concerns the work is told to whoever listens; keys, members and the like are not theirs to hear. The end of a cancelled run
-- is told when it has come.
WITH noted AS (
    INSERT INTO audit (workspace_id, id, at, actor, key_id, address, action, object_kind, object_id, before, after, request_id)
    VALUES (%(workspace_id)s, %(id)s, %(now)s, %(actor)s, %(key_id)s, %(address)s, %(action)s, %(object_kind)s, %(object_id)s,
            %(before)s, %(after)s, %(request_id)s))
INSERT INTO events (workspace_id, at, kind, object_id, job_id, run_id, actor)
SELECT watches.workspace_id, %(now)s, %(action)s, %(object_id)s, CASE %(object_kind)s WHEN 'job' THEN %(object_id)s END::uuid,
       CASE %(object_kind)s WHEN 'run' THEN %(object_id)s END::uuid, %(actor)s
  FROM watches
 WHERE watches.workspace_id = %(workspace_id)s AND watches.until > %(now)s
   AND %(object_kind)s IN ('job', 'run', 'calendar', 'freeze') AND %(action)s <> 'run.cancelled';
