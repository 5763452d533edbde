-- name: one
SELECT * FROM ledger WHERE id = %(run_id)s;

-- name: of_job
-- First the places, from runs_newest_of_a_job and no more than `scan` of them, so that a filter which matches little costs little; then
-- each run by its key. OFFSET 0 keeps the two steps apart: together, the planner may read a whole workspace to save a few lookups.
SELECT run.*
  FROM (SELECT planned_for, id FROM runs
         WHERE job_id = %(job_id)s
           AND (%(since)s::timestamptz IS NULL OR planned_for >= %(since)s)
           AND (%(until)s::timestamptz IS NULL OR planned_for < %(until)s)
           AND (%(before)s::timestamptz IS NULL OR (planned_for, id) < (%(before)s, %(before_id)s))
         ORDER BY planned_for DESC, id DESC
         LIMIT %(scan)s) AS newest
 CROSS JOIN LATERAL (SELECT * FROM ledger WHERE ledger.id = newest.id OFFSET 0) AS run
 WHERE (%(triggers)s::text[] IS NULL OR run.trigger = ANY (%(triggers)s))
   AND (%(statuses)s::text[] IS NULL OR run.status = ANY (%(statuses)s))
 ORDER BY newest.planned_for DESC, newest.id DESC
 LIMIT %(limit)s;

-- name: floor_of_job
-- Where such a walk stops, when there is more behind it.
SELECT planned_for, id FROM runs
 WHERE job_id = %(job_id)s
   AND (%(since)s::timestamptz IS NULL OR planned_for >= %(since)s)
   AND (%(until)s::timestamptz IS NULL OR planned_for < %(until)s)
   AND (%(before)s::timestamptz IS NULL OR (planned_for, id) < (%(before)s, %(before_id)s))
 ORDER BY planned_for DESC, id DESC
OFFSET %(scan)s LIMIT 1;

-- name: of_workspace
-- By id: ids begin with the instant their record was made. The ids come from runs_newest_of_a_workspace alone: walking the primary key
-- instead would pass through everything that all others did since a quiet workspace's last run.
SELECT run.*
  FROM (SELECT id FROM runs
         WHERE workspace_id = %(workspace_id)s
           AND (%(since_id)s::uuid IS NULL OR id >= %(since_id)s)
           AND (%(until_id)s::uuid IS NULL OR id < %(until_id)s)
           AND (%(before_id)s::uuid IS NULL OR id < %(before_id)s)
         ORDER BY id DESC
         LIMIT %(scan)s) AS newest
 CROSS JOIN LATERAL (SELECT * FROM ledger WHERE ledger.id = newest.id OFFSET 0) AS run
 WHERE (%(triggers)s::text[] IS NULL OR run.trigger = ANY (%(triggers)s))
   AND (%(statuses)s::text[] IS NULL OR run.status = ANY (%(statuses)s))
 ORDER BY newest.id DESC
 LIMIT %(limit)s;

-- name: floor_of_workspace
SELECT planned_for, id FROM runs
 WHERE workspace_id = %(workspace_id)s
   AND (%(since_id)s::uuid IS NULL OR id >= %(since_id)s)
   AND (%(until_id)s::uuid IS NULL OR id < %(until_id)s)
   AND (%(before_id)s::uuid IS NULL OR id < %(before_id)s)
 ORDER BY id DESC
OFFSET %(scan)s LIMIT 1;

-- name: attempts
-- A run that ended with its first attempt is its own record of it; the attempt under way is the lease.
SELECT number, status, worker_id, fence, leased_at, ended_at, error FROM attempts WHERE run_id = %(run_id)s
UNION ALL
SELECT 1, CASE status WHEN 'interrupted' THEN 'lost' WHEN 'skipped' THEN 'succeeded' ELSE status END, worker_id, fence, started_at,
       finished_at, error
  FROM runs
 WHERE id = %(run_id)s AND status IS NOT NULL AND attempt_count = 1 AND worker_id IS NOT NULL
   AND NOT EXISTS (SELECT FROM attempts WHERE attempts.run_id = runs.id)
UNION ALL
SELECT attempts, 'running', worker_id, fence, leased_at, NULL, NULL FROM leases WHERE run_id = %(run_id)s
 ORDER BY number;

-- name: payloads
-- What these jobs' payload is now, and what it was up to each edit that changed it: the audit keeps both sides of every edit.
SELECT id AS job_id, NULL::timestamptz AS until, definition -> 'payload' AS payload FROM jobs WHERE id = ANY (%(job_ids)s)
UNION ALL
SELECT object_id::uuid, at, before -> 'definition' -> 'payload'
  FROM audit
 WHERE workspace_id = %(workspace_id)s AND object_kind = 'job' AND object_id = ANY (%(object_ids)s) AND action = 'job.edited'
   AND before -> 'definition' -> 'payload' IS DISTINCT FROM after -> 'definition' -> 'payload'
 ORDER BY job_id, until NULLS LAST;

-- name: near
-- The record that people mean by an instant: of that planned time, or of the first in the minute that begins there.
SELECT * FROM ledger
 WHERE job_id = %(job_id)s AND planned_for >= %(at)s AND planned_for < %(before)s
 ORDER BY planned_for, id
 LIMIT 1;

-- name: gap_over
-- The gap record that covers an instant. Only gap records are in runs_gaps_of_a_job.
SELECT * FROM ledger
 WHERE job_id = %(job_id)s AND planned_until >= %(at)s AND planned_for <= %(at)s
 ORDER BY planned_until
 LIMIT 1;
