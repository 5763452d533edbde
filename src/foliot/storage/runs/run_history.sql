-- name: load_run
SELECT * FROM run_records WHERE id = %(run_id)s;

-- name: list_attempts
-- A run that ended with its first attempt has no row in attempts: the run is the record. The lease is the attempt under way.
SELECT number, status, worker_id AS worker, fence, leased_at, ended_at, error, external_id, revision FROM attempts WHERE run_id = %(run_id)s
UNION ALL
SELECT 1, CASE status WHEN 'interrupted' THEN 'lost' WHEN 'skipped' THEN 'succeeded' ELSE status END, worker_id, fence, started_at,
       finished_at, error, NULL, revision
  FROM runs
 WHERE id = %(run_id)s AND status IS NOT NULL AND attempt_count = 1 AND worker_id IS NOT NULL
   AND NOT EXISTS (SELECT FROM attempts WHERE attempts.run_id = runs.id)
UNION ALL
SELECT attempts, 'running', worker_id, fence, leased_at, NULL, NULL, external_id, revision FROM leases WHERE run_id = %(run_id)s
 ORDER BY number;

-- name: load_earliest_start
SELECT available_at FROM ready WHERE run_id = %(run_id)s
UNION ALL
SELECT available_at FROM waiting WHERE run_id = %(run_id)s;

-- name: list_payloads
-- The payloads of these jobs over time, from the revisions that changed them.
SELECT job_id, revision, at, payload
  FROM (SELECT job_id, revision, at, definition -> 'payload' AS payload,
               lag(definition -> 'payload') OVER steps AS before, row_number() OVER steps AS step
          FROM revisions WHERE job_id = ANY (%(job_ids)s)
        WINDOW steps AS (PARTITION BY job_id ORDER BY revision)) AS changes
 WHERE step = 1 OR payload IS DISTINCT FROM before
 ORDER BY job_id, revision DESC;

-- name: load_newest
-- Relies on runs_newest_of_a_job, as the next.
SELECT * FROM run_records
 WHERE job_id = %(job_id)s
 ORDER BY planned_for DESC, id DESC
 LIMIT 1;

-- name: find_near
-- The record of that planned time, or the first one after it within the given time.
SELECT * FROM run_records
 WHERE job_id = %(job_id)s AND planned_for >= %(at)s AND planned_for < %(before)s
 ORDER BY planned_for, id
 LIMIT 1;

-- name: find_gap
-- The gap record that covers an instant. Relies on runs_gaps_of_a_job, which holds gap records only.
SELECT * FROM run_records
 WHERE job_id = %(job_id)s AND planned_until >= %(at)s AND planned_for <= %(at)s
 ORDER BY planned_until
 LIMIT 1;

-- name: list_recent
-- The newest records of several jobs: one scan of runs_newest_of_a_job for each, and a look at the open runs alone.
SELECT job_id, recent.*
  FROM unnest(%(job_ids)s::uuid[]) WITH ORDINALITY AS wanted (job_id, place)
 CROSS JOIN LATERAL (
       SELECT runs.id, runs.number, runs.skip_reason, runs.planned_for, runs.count,
              COALESCE(runs.status, CASE WHEN EXISTS (SELECT FROM leases WHERE leases.run_id = runs.id) THEN 'running'
                                         WHEN EXISTS (SELECT FROM waiting WHERE waiting.run_id = runs.id) THEN 'waiting'
                                         ELSE 'ready' END) AS status
         FROM runs
        WHERE runs.job_id = wanted.job_id
          AND runs.planned_for >= COALESCE(%(since)s, '-infinity'::timestamptz)
        ORDER BY runs.planned_for DESC, runs.id DESC
        LIMIT %(limit)s) AS recent
 WHERE %(visible_owner)s::uuid IS NULL OR EXISTS (SELECT FROM jobs WHERE jobs.id = wanted.job_id AND jobs.owner_id = %(visible_owner)s)
 ORDER BY place, recent.planned_for DESC, recent.id DESC;
