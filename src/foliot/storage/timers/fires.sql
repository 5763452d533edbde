-- name: take_due
-- SKIP LOCKED: two ticking nodes take different timers. Nothing is due while a restored database waits for its operator, nor for a
-- node whose zone data is older than the data that planned times were last computed with. `is_fast_path`: only the rules of the job, a
-- freeze or a disabled type can make such a timer plan anything but one run; `services.scheduling.fast_path` checks those.
SELECT workspace_id, job_id, status, spec, schedule_rev, version, cursor_at,
       NULLIF(due_at, 'infinity') AS due_at, next_at, ending, runs_created, live, waiting, live_until, live_run_id, skip_next, skip_until, errors, has_gate, number,
       failures_in_a_row, has_dependents,
       status = 'active' AND live = 0 AND waiting = 0 AND live_until IS NULL AND skip_next IS NULL AND NOT has_gate AS is_fast_path
  FROM timers
 WHERE due_at <= %(now)s
   AND NOT EXISTS (SELECT FROM installation WHERE held_at IS NOT NULL OR tzdata_version > %(zone_data)s)
 ORDER BY timers.due_at
 LIMIT %(limit)s
   FOR UPDATE SKIP LOCKED;

-- name: fire
-- A batch in one statement: the timers advance and their plans are recorded, all or none. The caller compares both counts: fewer
-- timers means that another transaction moved one, fewer runs that a planned time had its record already.
WITH moved AS (
    UPDATE timers
       SET cursor_at = new.cursor_at, due_at = COALESCE(new.due_at, 'infinity'), next_at = new.next_at, ending = new.ending, version = timers.version + 1,
           live = timers.live + new.live, waiting = timers.waiting + new.waiting,
           live_run_id = COALESCE(new.live_run_id, timers.live_run_id), live_until = new.live_until,
           skip_next = CASE WHEN new.uses_skip_next THEN NULL ELSE timers.skip_next END, errors = new.errors,
           runs_created = timers.runs_created + new.fires, number = timers.number + new.numbers,
           fire_count = timers.fire_count + new.fires, skip_count = timers.skip_count + new.skips,
           last_fire_at = CASE WHEN new.fires > 0 THEN %(now)s ELSE timers.last_fire_at END,
           last_fire_status = COALESCE(new.fire_status, timers.last_fire_status),
           last_fire_run_id = COALESCE(new.fire_run_id, timers.last_fire_run_id),
           schedule_error_count = timers.schedule_error_count + new.schedule_errors
      FROM unnest(%(job_id)s::uuid[], %(version)s::bigint[], %(cursor_at)s::timestamptz[], %(due_at)s::timestamptz[],
                  %(next_at)s::timestamptz[], %(ending)s::text[], %(live)s::int[], %(waiting)s::int[], %(live_run_id)s::uuid[],
                  %(live_until)s::timestamptz[], %(uses_skip_next)s::boolean[], %(errors)s::smallint[], %(fires)s::int[],
                  %(numbers)s::int[], %(skips)s::bigint[], %(fire_status)s::text[], %(fire_run_id)s::uuid[], %(schedule_errors)s::int[])
           AS new (job_id, version, cursor_at, due_at, next_at, ending, live, waiting, live_run_id, live_until, uses_skip_next,
                   errors, fires, numbers, skips, fire_status, fire_run_id, schedule_errors)
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
announced AS (
    INSERT INTO events (workspace_id, at, kind, job_id, run_id)
    SELECT made.workspace_id, %(now)s, 'run.' || made.status, made.job_id, made.id
      FROM made JOIN recorded USING (id) JOIN watches ON watches.workspace_id = made.workspace_id AND watches.until > %(now)s
     WHERE made.status IS NOT NULL)
SELECT (SELECT count(*) FROM moved) AS moved, (SELECT count(*) FROM recorded) AS recorded;

-- name: fire_fast
-- The same for the fast path: each timer plans one run now and another later. Columns that the timer holds itself are not sent.
WITH moved AS (
    UPDATE timers
       SET cursor_at = new.planned_for, due_at = new.due_at, next_at = new.due_at, ending = NULL, version = timers.version + 1,
           live = 1, live_run_id = new.run_id, errors = 0, runs_created = timers.runs_created + 1, number = timers.number + 1,
           fire_count = timers.fire_count + 1, last_fire_at = %(now)s, last_fire_status = 'queued', last_fire_run_id = new.run_id
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
