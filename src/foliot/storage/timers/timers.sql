-- name: insert
INSERT INTO timers (workspace_id, job_id, status, spec, schedule_rev, cursor_at, due_at, next_at, ending, has_gate)
VALUES (%(workspace_id)s, %(job_id)s, %(status)s, %(spec)s, %(schedule_rev)s, %(cursor_at)s,
        COALESCE(%(due_at)s, 'infinity'::timestamptz), %(next_at)s, %(ending)s, %(has_gate)s);

-- name: take_due
-- SKIP LOCKED lets two ticking nodes pass each other. Nothing is due while a restored database waits for its operator, nor for a
-- node whose zone data is older than what planned times were last computed with. Nothing but its rules, and freezes, can stand in
-- the way of a timer that is free.
SELECT workspace_id, job_id, status, spec, schedule_rev, version, cursor_at,
       NULLIF(due_at, 'infinity') AS due_at, next_at, ending, runs_created, live, waiting, live_until, live_run_id, skip_next, skip_until, errors, has_gate, number,
       failures_in_a_row, has_dependents,
       status = 'active' AND live = 0 AND waiting = 0 AND live_until IS NULL AND skip_next IS NULL AND NOT has_gate AS is_free
  FROM timers
 WHERE due_at <= %(now)s
   AND NOT EXISTS (SELECT FROM installation WHERE held_at IS NOT NULL OR tzdata_version > %(zone_data)s)
 ORDER BY timers.due_at
 LIMIT %(limit)s
   FOR UPDATE SKIP LOCKED;

-- name: take_missed
-- What fell due while a restored database waited for its operator.
SELECT workspace_id, job_id, status, spec, schedule_rev, version, cursor_at, due_at, next_at, ending, runs_created, live, waiting,
       live_until, live_run_id, skip_next, skip_until, errors, has_gate, number
  FROM timers
 WHERE due_at <= %(now)s
 ORDER BY due_at
 LIMIT %(limit)s
   FOR UPDATE;

-- name: missed
SELECT job_id FROM timers WHERE due_at <= %(now)s ORDER BY due_at LIMIT %(limit)s;

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
-- In the order of ids, as everywhere, so that two who want the same timers cannot wait for each other.
SELECT workspace_id, job_id, status, spec, schedule_rev, version, cursor_at,
       NULLIF(due_at, 'infinity') AS due_at, next_at, ending, runs_created, live, waiting, live_until, live_run_id, skip_next, skip_until, errors, has_gate, number, failures_in_a_row, has_dependents
  FROM timers
 WHERE job_id = ANY (%(job_ids)s::uuid[])
 ORDER BY job_id
   FOR UPDATE;

-- name: lock_unread
-- Instants that no calendar has are the present one: what is wrong with them is why somebody asks.
SELECT workspace_id, status, schedule_rev, version, errors, number, live, waiting, live_until, live_run_id,
       CASE WHEN isfinite(cursor_at) THEN cursor_at ELSE %(now)s END AS cursor_at,
       CASE WHEN isfinite(due_at) THEN due_at ELSE %(now)s END AS due_at
  FROM timers
 WHERE job_id = %(job_id)s AND due_at <= %(now)s
   FOR UPDATE;

-- name: lock_with_dependents
-- The end of a run may start runs of the jobs that depend on its job: all of them are locked at once, in the order of ids. So are those
-- behind a dependent that cancels its live run for the new one, since that is an end as well. A level is one row of
-- arrays: of a recursion over rows the planner believes that it finds thousands, and reads all timers there are for them.
WITH RECURSIVE wanted (ids, ending) AS (
    SELECT %(job_ids)s::uuid[], %(job_ids)s::uuid[]
    UNION ALL
    SELECT behind.ids, behind.ending
      FROM wanted CROSS JOIN LATERAL (
           SELECT array_agg(job_id) AS ids, array_agg(job_id) FILTER (WHERE (
                  SELECT position('"cancel_running"' IN spec) > 0 FROM timers WHERE timers.job_id = dependencies.job_id)) AS ending
             FROM dependencies WHERE upstream_id = ANY (wanted.ending)) AS behind
     WHERE behind.ids IS NOT NULL)
SELECT workspace_id, job_id, status, spec, schedule_rev, version, cursor_at,
       NULLIF(due_at, 'infinity') AS due_at, next_at, ending, runs_created, live, waiting, live_until, live_run_id, skip_next, skip_until, errors,
       has_gate, number, failures_in_a_row, has_dependents
  FROM timers
 WHERE job_id = ANY (ARRAY(SELECT unnest(ids) FROM wanted))
 ORDER BY job_id
   FOR UPDATE;

-- name: fire
-- A whole batch in one statement: the timers move on, and what they planned is recorded. Either all of it is there or none. The
-- caller compares both counts: fewer timers means somebody else moved one, fewer runs that a planned time had its record already.
WITH moved AS (
    UPDATE timers
       SET cursor_at = new.cursor_at, due_at = COALESCE(new.due_at, 'infinity'), next_at = new.next_at, ending = new.ending, version = timers.version + 1,
           live = timers.live + new.live, waiting = timers.waiting + new.waiting,
           live_run_id = COALESCE(new.live_run_id, timers.live_run_id), live_until = new.live_until,
           skip_next = CASE WHEN new.uses_skip_next THEN NULL ELSE timers.skip_next END, errors = new.errors,
           runs_created = timers.runs_created + new.fires, number = timers.number + new.numbers,
           fire_count = timers.fire_count + new.fires, skip_count = timers.skip_count + new.skips,
           last_fire_at = CASE WHEN new.fires > 0 THEN %(now)s ELSE timers.last_fire_at END
      FROM unnest(%(job_id)s::uuid[], %(version)s::bigint[], %(cursor_at)s::timestamptz[], %(due_at)s::timestamptz[],
                  %(next_at)s::timestamptz[], %(ending)s::text[], %(live)s::int[], %(waiting)s::int[], %(live_run_id)s::uuid[],
                  %(live_until)s::timestamptz[], %(uses_skip_next)s::boolean[], %(errors)s::smallint[], %(fires)s::int[],
                  %(numbers)s::int[], %(skips)s::bigint[])
           AS new (job_id, version, cursor_at, due_at, next_at, ending, live, waiting, live_run_id, live_until, uses_skip_next,
                   errors, fires, numbers, skips)
     WHERE timers.job_id = new.job_id AND timers.version = new.version
 RETURNING timers.job_id),
made AS MATERIALIZED (
    SELECT * FROM unnest(%(run_workspace_id)s::uuid[], %(run_id)s::uuid[], %(run_job_id)s::uuid[], %(run_number)s::bigint[],
                         %(status)s::text[], %(skip_reason)s::text[], %(note)s::text[], %(planned_for)s::timestamptz[],
                         %(planned_key)s::timestamp[], %(fold)s::smallint[], %(schedule_rev)s::int[],
                         %(planned_until)s::timestamptz[], %(count)s::int[], %(waits_for)s::text[], %(queue)s::text[],
                         %(type)s::text[], %(priority)s::smallint[], %(available_at)s::timestamptz[], %(exclusive)s::boolean[],
                         %(concurrency_key)s::text[], %(timeout)s::interval[], %(expires_at)s::timestamptz[], %(target)s::text[],
                         %(read_only)s::boolean[])
             AS made (workspace_id, id, job_id, number, status, skip_reason, note, planned_for, planned_key, fold, schedule_rev,
                      planned_until, count, waits_for, queue, type, priority, available_at, exclusive, concurrency_key, timeout,
                      expires_at, target, read_only)),
recorded AS (
    INSERT INTO runs (workspace_id, id, job_id, number, trigger, status, skip_reason, note, planned_for, planned_key, fold,
                      schedule_rev, planned_until, count, created_at, finished_at)
    SELECT workspace_id, id, job_id, number, 'schedule', status, skip_reason, note, planned_for, planned_key, fold, schedule_rev,
           planned_until, count, %(now)s, CASE WHEN status IS NOT NULL THEN %(now)s END
      FROM made
        ON CONFLICT (planned_key, fold, schedule_rev, job_id) WHERE trigger = 'schedule' DO NOTHING
 RETURNING id),
readied AS (
    INSERT INTO ready (workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive, concurrency_key,
                       timeout, expires_at, target, read_only, trigger)
    SELECT workspace_id, id, job_id, queue, type, priority, available_at, planned_for, exclusive, concurrency_key, timeout,
           expires_at, target, read_only, 'schedule'
      FROM made WHERE status IS NULL AND waits_for IS NULL),
held AS (
    INSERT INTO waiting (workspace_id, run_id, job_id, waits_for, queue, type, priority, available_at, planned_for, exclusive,
                         concurrency_key, timeout, expires_at, target, read_only, trigger)
    SELECT workspace_id, id, job_id, waits_for, queue, type, priority, available_at, planned_for, exclusive, concurrency_key,
           timeout, expires_at, target, read_only, 'schedule'
      FROM made WHERE waits_for IS NOT NULL),
told AS (
    INSERT INTO events (workspace_id, at, kind, job_id, run_id)
    SELECT made.workspace_id, %(now)s, 'run.' || made.status, made.job_id, made.id
      FROM made JOIN recorded USING (id) JOIN watches ON watches.workspace_id = made.workspace_id AND watches.until > %(now)s
     WHERE made.status IS NOT NULL)
SELECT (SELECT count(*) FROM moved) AS moved, (SELECT count(*) FROM recorded) AS recorded;

-- name: fire_plainly
-- The same for timers that are free and plan one run now and another to follow: most of what is ever fired. Whatever the timer
-- knows itself is not sent.
WITH moved AS (
    UPDATE timers
       SET cursor_at = new.planned_for, due_at = new.due_at, next_at = new.due_at, ending = NULL, version = timers.version + 1,
           live = 1, live_run_id = new.run_id, errors = 0, runs_created = timers.runs_created + 1, number = timers.number + 1,
           fire_count = timers.fire_count + 1, last_fire_at = %(now)s
      FROM unnest(%(job_id)s::uuid[], %(version)s::bigint[], %(run_id)s::uuid[], %(due_at)s::timestamptz[],
                  %(planned_for)s::timestamptz[], %(planned_key)s::timestamp[], %(fold)s::smallint[], %(available_at)s::timestamptz[],
                  %(queue)s::text[], %(type)s::text[], %(priority)s::smallint[], %(exclusive)s::boolean[], %(concurrency_key)s::text[],
                  %(timeout)s::interval[])
           AS new (job_id, version, run_id, due_at, planned_for, planned_key, fold, available_at, queue, type, priority, exclusive,
                   concurrency_key, timeout)
     WHERE timers.job_id = new.job_id AND timers.version = new.version
 RETURNING timers.workspace_id, new.run_id, timers.job_id, timers.number, timers.schedule_rev, new.planned_for, new.planned_key,
           new.fold, new.available_at, new.queue, new.type, new.priority, new.exclusive, new.concurrency_key, new.timeout),
recorded AS (
    INSERT INTO runs (workspace_id, id, job_id, number, trigger, planned_for, planned_key, fold, schedule_rev, created_at)
    SELECT workspace_id, run_id, job_id, number, 'schedule', planned_for, planned_key, fold, schedule_rev, %(now)s FROM moved
        ON CONFLICT (planned_key, fold, schedule_rev, job_id) WHERE trigger = 'schedule' DO NOTHING
 RETURNING id),
readied AS (
    INSERT INTO ready (workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive, concurrency_key,
                       timeout, trigger)
    SELECT workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive, concurrency_key, timeout,
           'schedule'
      FROM moved)
SELECT (SELECT count(*) FROM moved) AS moved, (SELECT count(*) FROM recorded) AS recorded;

-- name: recorded_already
SELECT runs.job_id, runs.planned_key, runs.fold
  FROM unnest(%(job_ids)s::uuid[], %(planned_keys)s::timestamp[], %(folds)s::smallint[], %(schedule_revs)s::int[])
       AS asked (job_id, planned_key, fold, schedule_rev)
  JOIN runs ON runs.planned_key = asked.planned_key AND runs.fold = asked.fold AND runs.schedule_rev = asked.schedule_rev
           AND runs.job_id = asked.job_id AND runs.trigger = 'schedule';

-- name: settle
-- What the ends of runs mean for their jobs: one row per job, already added up.
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
       failures_in_a_row = CASE WHEN new.ends_streak THEN 0 ELSE timers.failures_in_a_row END + new.failures_in_a_row,
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
              %(ends_streak)s::boolean[], %(failures_in_a_row)s::int[], %(last_run_at)s::timestamptz[], %(last_run_id)s::uuid[],
              %(last_run_status)s::text[], %(last_error)s::text[], %(success_id)s::uuid[], %(failure_id)s::uuid[], %(end_id)s::uuid[])
       AS new (job_id, live, waiting, numbers, live_run_id, moves_timer, cursor_at, due_at, next_at, ending, runs, successes,
               failures, skips, ends_streak,
               failures_in_a_row, last_run_at, last_run_id, last_run_status, last_error, success_id, failure_id, end_id)
 WHERE timers.job_id = new.job_id;

-- name: reset
-- Where planning was asked anew though nothing was due: a calendar was edited, a freeze lifted.
UPDATE timers
   SET due_at = COALESCE(new.due_at, 'infinity'), next_at = new.next_at, ending = new.ending, version = timers.version + 1
  FROM unnest(%(job_ids)b::uuid[], %(due_at)b::timestamptz[], %(next_at)b::timestamptz[], %(ending)s::text[])
       AS new (job_id, due_at, next_at, ending)
 WHERE timers.job_id = new.job_id;

-- name: respec
UPDATE timers SET spec = %(spec)s, version = version + 1 WHERE job_id = %(job_id)s;

-- name: place
-- An edit: new rules, and the timer where they put it.
UPDATE timers
   SET spec = %(spec)s, schedule_rev = %(schedule_rev)s, cursor_at = %(cursor_at)s,
       due_at = COALESCE(%(due_at)s, 'infinity'::timestamptz), next_at = %(next_at)s, ending = %(ending)s, has_gate = %(has_gate)s,
       errors = 0, version = version + 1
 WHERE job_id = %(job_id)s;

-- name: halt
-- The cursor stays: it says from when on planned times have gone by unrecorded.
UPDATE timers SET due_at = 'infinity', next_at = NULL, version = version + 1 WHERE job_id = ANY (%(job_ids)s);

-- name: forgive
UPDATE timers SET failures_in_a_row = 0, errors = 0 WHERE job_id = %(job_id)s;

-- name: set_skip_next
UPDATE timers SET skip_next = %(reason)s, skip_until = %(until)s, version = version + 1 WHERE job_id = %(job_id)s;
