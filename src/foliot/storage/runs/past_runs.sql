-- name: insert
-- Ended when they are inserted: no row of ready, waiting or leases, so no worker sees them. The id is made of the run itself, so a second import
-- conflicts with the first. Numbers follow the order of the starts; the caller holds the timer's lock.
INSERT INTO runs (workspace_id, id, job_id, number, trigger, status, skip_reason, note, planned_for, planned_key, schedule_rev, created_at,
                  started_at, finished_at, output, error, triggered_by)
SELECT %(workspace_id)s, new.id, %(job_id)s, %(number)s + row_number() OVER (ORDER BY new.started_at, new.id), 'import', new.status,
       CASE WHEN new.status = 'skipped' THEN 'imported' END, new.note, new.started_at, new.started_at AT TIME ZONE 'UTC', %(schedule_rev)s,
       new.started_at, CASE WHEN new.status <> 'skipped' THEN new.started_at END, new.finished_at, new.output, new.error, %(triggered_by)s
  FROM unnest(%(id)s::uuid[], %(started_at)s::timestamptz[], %(finished_at)s::timestamptz[], %(status)s::text[], %(note)s::text[],
              %(output)s::jsonb[], %(error)s::jsonb[]) AS new (id, started_at, finished_at, status, note, output, error)
 WHERE NOT EXISTS (SELECT FROM runs WHERE runs.id = new.id)
    ON CONFLICT (id) DO NOTHING
RETURNING id;

-- name: count_numbers
UPDATE timers SET number = number + %(count)s WHERE job_id = %(job_id)s;

-- name: set_last_run
-- Only the newest run is the last one. Times of successes and failures stay: gates of dependents wait for runs of this scheduler.
UPDATE timers
   SET last_run_at = %(at)s, last_run_id = %(run_id)s, last_run_status = %(status)s, last_error = %(error)s
 WHERE job_id = %(job_id)s AND (last_run_at IS NULL OR last_run_at <= %(at)s);

-- name: copy_state
-- Once, and only before the first run here.
UPDATE timers
   SET last_run_at = %(last_run_at)s, last_run_status = %(last_run_status)s, last_error = %(last_error)s,
       failures_in_a_row = %(failures_in_a_row)s, schedule_error_count = %(schedule_errors)s
 WHERE job_id = %(job_id)s AND run_count = 0 AND last_run_at IS NULL AND last_run_status IS NULL;
