-- name: insert
INSERT INTO timers (workspace_id, job_id, status, spec, schedule_rev, cursor_at, due_at, next_at, ending, has_gate)
VALUES (%(workspace_id)s, %(job_id)s, %(status)s, %(spec)s, %(schedule_rev)s, %(cursor_at)s,
        COALESCE(%(due_at)s, 'infinity'::timestamptz), %(next_at)s, %(ending)s, %(has_gate)s);

-- name: lock_missed
-- Timers that became due while a restored database waited for its operator.
SELECT workspace_id, job_id, status, spec, schedule_rev, version, cursor_at, due_at, next_at, ending, runs_created, live, waiting,
       live_until, live_run_id, skip_next, skip_until, errors, has_gate, number
  FROM timers
 WHERE due_at <= %(now)s
 ORDER BY due_at
 LIMIT %(limit)s
   FOR UPDATE;

-- name: missed_jobs
SELECT job_id FROM timers WHERE due_at <= %(now)s ORDER BY due_at LIMIT %(limit)s;

-- name: count_due
SELECT count(*) FROM (SELECT FROM timers WHERE due_at <= %(now)s LIMIT %(most)s) AS late;

-- name: count_planned
SELECT count(*) FROM (SELECT FROM timers WHERE due_at < 'infinity' LIMIT %(most)s) AS planned;

-- name: next_due
SELECT min(due_at) AS due_at FROM timers WHERE due_at < 'infinity';

-- name: next_due_after
SELECT min(due_at) AS due_at FROM timers WHERE due_at > %(after)s AND due_at < 'infinity';

-- name: read
SELECT workspace_id, job_id, status, spec, schedule_rev, version, cursor_at,
       NULLIF(due_at, 'infinity') AS due_at, next_at, ending, runs_created, live, waiting, live_until, live_run_id, skip_next, skip_until, errors, has_gate,
       number, failures_in_a_row, has_dependents
  FROM timers
 WHERE job_id = ANY (%(job_ids)s::uuid[]);

-- name: lock
-- In the order of ids, as everywhere: two transactions that lock the same timers must not deadlock.
SELECT workspace_id, job_id, status, spec, schedule_rev, version, cursor_at,
       NULLIF(due_at, 'infinity') AS due_at, next_at, ending, runs_created, live, waiting, live_until, live_run_id, skip_next, skip_until, errors, has_gate, number, failures_in_a_row, has_dependents, false AS is_fast_path, has_incident
  FROM timers
 WHERE job_id = ANY (%(job_ids)s::uuid[])
 ORDER BY job_id
   FOR UPDATE;

-- name: lock_unread
-- Infinite instants are read as now: they may be the error that is being recorded.
SELECT workspace_id, status, schedule_rev, version, errors, number, live, waiting, live_until, live_run_id,
       CASE WHEN isfinite(cursor_at) THEN cursor_at ELSE %(now)s END AS cursor_at,
       CASE WHEN isfinite(due_at) THEN due_at ELSE %(now)s END AS due_at
  FROM timers
 WHERE job_id = %(job_id)s AND due_at <= %(now)s
   FOR UPDATE;

-- name: lock_with_dependents
-- The end of a run may start runs of dependent jobs: all are locked at once, in the order of ids. A dependent that cancels its live run
-- for the new one ends a run as well, so its dependents are locked too. Each level is one row of arrays: for a recursion over rows the
-- planner expects thousands and scans the whole table.
WITH RECURSIVE wanted (ids, cancelling) AS (
    SELECT %(job_ids)s::uuid[], %(job_ids)s::uuid[]
    UNION ALL
    SELECT behind.ids, behind.cancelling
      FROM wanted CROSS JOIN LATERAL (
           SELECT array_agg(job_id) AS ids, array_agg(job_id) FILTER (WHERE (
                  SELECT position('"cancel_running"' IN spec) > 0 FROM timers WHERE timers.job_id = dependencies.job_id)) AS cancelling
             FROM dependencies WHERE upstream_id = ANY (wanted.cancelling)) AS behind
     WHERE behind.ids IS NOT NULL)
SELECT workspace_id, job_id, status, spec, schedule_rev, version, cursor_at,
       NULLIF(due_at, 'infinity') AS due_at, next_at, ending, runs_created, live, waiting, live_until, live_run_id, skip_next, skip_until, errors,
       has_gate, number, failures_in_a_row, has_dependents, false AS is_fast_path, has_incident
  FROM timers
 WHERE job_id = ANY (ARRAY(SELECT unnest(ids) FROM wanted))
 ORDER BY job_id
   FOR UPDATE;

-- name: settle
-- One row of deltas per job.
UPDATE timers
   SET version = timers.version + 1, live = timers.live + new.live, waiting = timers.waiting + new.waiting,
       number = timers.number + new.numbers,
       live_run_id = CASE WHEN timers.live + new.live = 0 THEN NULL ELSE COALESCE(new.live_run_id, timers.live_run_id) END,
       live_until = CASE WHEN new.live_run_id IS NOT NULL OR timers.live + new.live = 0 THEN NULL ELSE timers.live_until END,
       cursor_at = COALESCE(new.cursor_at, timers.cursor_at),
       due_at = CASE WHEN new.moves_timer THEN COALESCE(new.due_at, 'infinity') ELSE timers.due_at END,
       next_at = CASE WHEN new.moves_timer THEN new.next_at ELSE timers.next_at END,
       ending = CASE WHEN new.moves_timer THEN new.ending ELSE timers.ending END,
       run_count = timers.run_count + new.runs, success_count = timers.success_count + new.successes,
       failure_count = timers.failure_count + new.failures, skip_count = timers.skip_count + new.skips,
       failed_attempt_count = timers.failed_attempt_count + new.failed_attempts,
       failures_in_a_row = CASE WHEN new.ends_streak THEN 0 ELSE timers.failures_in_a_row END + new.failures_in_a_row,
       has_incident = CASE WHEN new.failures_in_a_row > 0 THEN true WHEN new.ends_streak THEN false ELSE timers.has_incident END,
       last_run_at = COALESCE(new.last_run_at, timers.last_run_at), last_run_id = COALESCE(new.last_run_id, timers.last_run_id),
       last_run_status = COALESCE(new.last_run_status, timers.last_run_status),
       last_error = CASE WHEN new.last_run_id IS NULL THEN timers.last_error ELSE new.last_error END,
       last_success_at = CASE WHEN new.success_id IS NULL THEN timers.last_success_at ELSE %(now)s END,
       last_success_run_id = COALESCE(new.success_id, timers.last_success_run_id),
       last_failure_at = CASE WHEN new.failure_id IS NULL THEN timers.last_failure_at ELSE %(now)s END,
       last_failure_run_id = COALESCE(new.failure_id, timers.last_failure_run_id),
       last_end_at = CASE WHEN new.end_id IS NULL THEN timers.last_end_at ELSE %(now)s END,
       last_end_run_id = COALESCE(new.end_id, timers.last_end_run_id)
  FROM unnest(%(job_ids)s::uuid[], %(live)s::int[], %(waiting)s::int[], %(numbers)s::int[], %(live_run_id)s::uuid[],
              %(moves_timer)s::boolean[], %(cursor_at)s::timestamptz[], %(due_at)s::timestamptz[], %(next_at)s::timestamptz[],
              %(ending)s::text[], %(runs)s::int[], %(successes)s::int[], %(failures)s::int[], %(skips)s::int[],
              %(failed_attempts)s::int[],
              %(ends_streak)s::boolean[], %(failures_in_a_row)s::int[], %(last_run_at)s::timestamptz[], %(last_run_id)s::uuid[],
              %(last_run_status)s::text[], %(last_error)s::text[], %(success_id)s::uuid[], %(failure_id)s::uuid[], %(end_id)s::uuid[])
       AS new (job_id, live, waiting, numbers, live_run_id, moves_timer, cursor_at, due_at, next_at, ending, runs, successes,
               failures, skips, failed_attempts, ends_streak,
               failures_in_a_row, last_run_at, last_run_id, last_run_status, last_error, success_id, failure_id, end_id)
 WHERE timers.job_id = new.job_id;

-- name: reset
-- Timers that are planned again although nothing is due: a calendar was edited, a freeze lifted.
UPDATE timers
   SET due_at = COALESCE(new.due_at, 'infinity'), next_at = new.next_at, ending = new.ending, version = timers.version + 1
  FROM unnest(%(job_ids)b::uuid[], %(due_at)b::timestamptz[], %(next_at)b::timestamptz[], %(ending)s::text[])
       AS new (job_id, due_at, next_at, ending)
 WHERE timers.job_id = new.job_id;

-- name: respec
UPDATE timers SET spec = %(spec)s, version = version + 1 WHERE job_id = %(job_id)s;

-- name: store_edit
UPDATE timers
   SET spec = %(spec)s, schedule_rev = %(schedule_rev)s, cursor_at = %(cursor_at)s,
       due_at = COALESCE(%(due_at)s, 'infinity'::timestamptz), next_at = %(next_at)s, ending = %(ending)s, has_gate = %(has_gate)s,
       errors = 0, version = version + 1
 WHERE job_id = %(job_id)s;

-- name: clear_due
-- The cursor stays: planned times behind it have no record yet.
UPDATE timers SET due_at = 'infinity', next_at = NULL, version = version + 1 WHERE job_id = ANY (%(job_ids)s);

-- name: reset_failures
UPDATE timers SET failures_in_a_row = 0, errors = 0 WHERE job_id = %(job_id)s;

-- name: set_skip_next
UPDATE timers SET skip_next = %(reason)s, skip_until = %(until)s, version = version + 1 WHERE job_id = %(job_id)s;
