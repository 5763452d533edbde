-- name: append_many
-- One action on many jobs. Listeners of the workspace get an event for each, as in `append`.
WITH entries AS MATERIALIZED (
    SELECT * FROM unnest(%(ids)s::uuid[], %(object_ids)s::text[], %(before)s::text[]) AS entry (id, object_id, before)),
noted AS (
    INSERT INTO audit (workspace_id, id, at, actor, key_id, address, action, object_kind, object_id, before, after, request_id)
    SELECT %(workspace_id)s, entries.id, %(now)s, %(actor)s, %(key_id)s, %(address)s, %(action)s, %(object_kind)s, entries.object_id,
           entries.before::jsonb, %(after)s, %(request_id)s
      FROM entries)
INSERT INTO events (workspace_id, at, kind, object_id, job_id, actor)
SELECT watches.workspace_id, %(now)s, %(action)s, entries.object_id, entries.object_id::uuid, %(actor)s
  FROM entries JOIN watches ON watches.workspace_id = %(workspace_id)s AND watches.until > %(now)s
 WHERE %(object_kind)s = 'job';

-- name: append
-- Listeners get an event for changes of jobs, runs, calendars and freezes; keys and members are no concern of theirs. A cancelled
-- run gets its event when it has ended.
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

-- name: page
-- The page is cut before the join: an actor is text, since not every actor is a principal, and no index serves that join.
-- Relies on audit_newest_first, or audit_of_one_object with a kind and id.
WITH page AS MATERIALIZED (
    SELECT * FROM audit
     WHERE CASE WHEN %(workspace_id)s::uuid IS NULL THEN workspace_id IS NULL ELSE workspace_id = %(workspace_id)s END
       AND (%(actor)s::text IS NULL OR actor = %(actor)s)
       AND (%(action)s::text IS NULL OR action = %(action)s OR starts_with(action, %(action)s || '.'))
       AND (%(object_kind)s::text IS NULL OR object_kind = %(object_kind)s)
       AND (%(object_id)s::text IS NULL OR object_id = %(object_id)s)
       AND (%(since)s::timestamptz IS NULL OR at >= %(since)s)
       AND (%(until)s::timestamptz IS NULL OR at < %(until)s)
       AND (%(before_at)s::timestamptz IS NULL OR (at, id) < (%(before_at)s, %(before_id)s::uuid))
     ORDER BY at DESC, id DESC
     LIMIT %(limit)s)
SELECT page.id, page.at, page.actor, principals.name AS actor_name, principals.kind AS actor_kind, page.key_id,
       host(page.address) AS address, page.action, page.object_kind, page.object_id, page.before, page.after, page.request_id
  FROM page LEFT JOIN principals ON principals.id::text = page.actor
 ORDER BY page.at DESC, page.id DESC;
