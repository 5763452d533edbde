-- name: one
SELECT * FROM run_records WHERE id = %(run_id)s;

-- name: attempts
-- A run that ended with its first attempt is its own record of it; the attempt under way is the lease.
SELECT number, status, worker_id, fence, leased_at, ended_at, error, external_id FROM attempts WHERE run_id = %(run_id)s
UNION ALL
SELECT 1, CASE status WHEN 'interrupted' THEN 'lost' WHEN 'skipped' THEN 'succeeded' ELSE status END, worker_id, fence, started_at,
       finished_at, error, NULL
  FROM runs
 WHERE id = %(run_id)s AND status IS NOT NULL AND attempt_count = 1 AND worker_id IS NOT NULL
   AND NOT EXISTS (SELECT FROM attempts WHERE attempts.run_id = runs.id)
UNION ALL
SELECT attempts, 'running', worker_id, fence, leased_at, NULL, NULL, external_id FROM leases WHERE run_id = %(run_id)s
 ORDER BY number;

-- name: startable_at
SELECT available_at FROM ready WHERE run_id = %(run_id)s
UNION ALL
SELECT available_at FROM waiting WHERE run_id = %(run_id)s;

-- name: payloads
-- What the payload of these jobs is and was, by the revisions that changed it.
SELECT job_id, at, payload
  FROM (SELECT job_id, revision, at, definition -> 'payload' AS payload,
               lag(definition -> 'payload') OVER steps AS before, row_number() OVER steps AS place
          FROM revisions WHERE job_id = ANY (%(job_ids)s)
        WINDOW steps AS (PARTITION BY job_id ORDER BY revision)) AS followed
 WHERE place = 1 OR payload IS DISTINCT FROM before
 ORDER BY job_id, revision DESC;

-- name: newest
SELECT * FROM run_records
 WHERE job_id = %(job_id)s
 ORDER BY planned_for DESC, id DESC
 LIMIT 1;

-- name: near
-- The record that people mean by an instant: of that planned time, or of the first in the minute that begins there.
SELECT * FROM run_records
 WHERE job_id = %(job_id)s AND planned_for >= %(at)s AND planned_for < %(before)s
 ORDER BY planned_for, id
 LIMIT 1;

-- name: gap_over
-- The gap record that covers an instant. Only gap records are in runs_gaps_of_a_job.
SELECT * FROM run_records
 WHERE job_id = %(job_id)s AND planned_until >= %(at)s AND planned_for <= %(at)s
 ORDER BY planned_until
 LIMIT 1;
