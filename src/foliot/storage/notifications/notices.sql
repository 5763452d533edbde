-- name: insert
-- By the transaction that makes the facts true, under the locks of their jobs' timers: the sequence keeps the order of one job's facts.
INSERT INTO notices (workspace_id, event, at, job_id, run_id, facts)
SELECT workspace_id, event, %(now)s, job_id, run_id, facts
  FROM unnest(%(workspace_ids)s::uuid[], %(events)s::text[], %(job_ids)s::uuid[], %(run_ids)s::uuid[], %(facts)s::jsonb[])
       AS new (workspace_id, event, job_id, run_id, facts);

-- name: list_waiting_workspaces
-- A recursive scan of the primary key visits each workspace once. Reminders and digests are few: their partial indexes are read whole.
WITH RECURSIVE waiting AS (
    (SELECT workspace_id FROM notices ORDER BY workspace_id LIMIT 1)
    UNION ALL
    SELECT (SELECT notices.workspace_id FROM notices WHERE notices.workspace_id > waiting.workspace_id ORDER BY notices.workspace_id LIMIT 1)
      FROM waiting WHERE waiting.workspace_id IS NOT NULL)
SELECT workspace_id FROM waiting WHERE workspace_id IS NOT NULL
 UNION
SELECT workspace_id FROM incidents WHERE closed_at IS NULL AND remind_at IS NOT NULL AND remind_at <= %(now)s
 UNION
SELECT workspace_id FROM channels WHERE digest_at IS NOT NULL AND digest_at <= %(now)s
 LIMIT %(limit)s;

-- name: find_next_due
SELECT min(due_at)
  FROM (SELECT min(remind_at) AS due_at FROM incidents WHERE closed_at IS NULL AND remind_at IS NOT NULL
         UNION ALL
        SELECT min(digest_at) FROM channels WHERE digest_at IS NOT NULL) AS coming;

-- name: lock_oldest
-- In the order of the sequence: a second notifier waits for the first one and then finds the rows gone.
SELECT seq, event, at, job_id, run_id, COALESCE(facts || jsonb_build_object('by', principals.name), facts) AS facts
  FROM notices LEFT JOIN principals ON principals.id::text = notices.facts ->> 'by'
 WHERE notices.workspace_id = %(workspace_id)s
 ORDER BY seq LIMIT %(limit)s
   FOR UPDATE OF notices;

-- name: delete
DELETE FROM notices WHERE workspace_id = %(workspace_id)s AND seq = ANY (%(seqs)s);

-- name: load_jobs
SELECT jobs.id, jobs.name, jobs.queue, jobs.tags, COALESCE(jobs.definition -> 'spec' -> 'schedule' ->> 'timezone', 'UTC') AS timezone,
       principals.name AS owner, timers.next_at, timers.last_success_at, jobs.definition -> 'notify' AS notify,
       jobs.status = 'archived' AS is_archived,
       jobs.status IN ('paused', 'disabled') AND jobs.status_by IS DISTINCT FROM %(engine)s AS is_stopped_by_person
  FROM jobs
  LEFT JOIN timers ON timers.job_id = jobs.id
  LEFT JOIN principals ON principals.id = jobs.owner_id
 WHERE jobs.id = ANY (%(job_ids)s);

-- name: load_runs
SELECT id, number, planned_for, attempt_count, started_at, finished_at FROM runs WHERE id = ANY (%(run_ids)s);
