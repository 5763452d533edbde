-- name: list_timers
-- Timers without locks, and their runs as far as primary keys find them: enough to suspect a timer. The caller locks the suspects.
SELECT timers.workspace_id, timers.job_id, timers.status, timers.spec, timers.schedule_rev, timers.version, timers.cursor_at,
       NULLIF(timers.due_at, 'infinity') AS due_at, timers.next_at, timers.ending, timers.runs_created, timers.live, timers.waiting,
       timers.live_until, timers.live_run_id, timers.skip_next, timers.skip_until, timers.errors, timers.has_gate, timers.number,
       timers.live_run_id IS NULL
           OR EXISTS (SELECT FROM ready WHERE ready.run_id = timers.live_run_id)
           OR EXISTS (SELECT FROM leases WHERE leases.run_id = timers.live_run_id)
           OR EXISTS (SELECT FROM waiting WHERE waiting.run_id = timers.live_run_id) AS finds_its_run,
       (SELECT count(*) FROM waiting WHERE waiting.job_id = timers.job_id AND waiting.waits_for = 'turn') AS behind
  FROM timers
 WHERE timers.job_id > %(after)s AND timers.status IN ('active', 'pending')
 ORDER BY timers.job_id
 LIMIT %(limit)s;

-- name: list_due
-- The timers that the next tick reads. Relies on timers_due.
SELECT job_id, spec, due_at FROM timers WHERE due_at <= %(now)s ORDER BY due_at LIMIT %(limit)s;

-- name: list_queued
-- The unfinished runs of these jobs in one statement: a run that moves from ready to leases meanwhile is seen once.
SELECT run_id, job_id, COALESCE(waits_for = 'turn', false) AS is_behind
  FROM (SELECT run_id, job_id, NULL::text AS waits_for, 0 AS position FROM leases WHERE job_id = ANY (%(job_ids)s)
        UNION ALL
        SELECT run_id, job_id, NULL, position FROM ready WHERE job_id = ANY (%(job_ids)s)
        UNION ALL
        SELECT run_id, job_id, waits_for, position FROM waiting WHERE job_id = ANY (%(job_ids)s)) AS unfinished
 ORDER BY run_id;

-- name: set_timers
UPDATE timers
   SET cursor_at = new.cursor_at, due_at = COALESCE(new.due_at, 'infinity'), next_at = new.next_at, ending = new.ending,
       live = new.live, waiting = new.waiting, live_run_id = new.live_run_id, version = timers.version + 1
  FROM unnest(%(job_id)s::uuid[], %(cursor_at)s::timestamptz[], %(due_at)s::timestamptz[], %(next_at)s::timestamptz[],
              %(ending)s::text[], %(live)s::int[], %(waiting)s::int[], %(live_run_id)s::uuid[])
       AS new (job_id, cursor_at, due_at, next_at, ending, live, waiting, live_run_id)
 WHERE timers.job_id = new.job_id;

-- name: end_orphans
-- Open runs without a row in ready, waiting or leases. Under the timer's lock no run moves between those tables.
WITH ended AS (
    UPDATE runs
       SET status = 'interrupted', finished_at = %(now)s, error = %(error)s
     WHERE id IN (SELECT newest.id
                    FROM unnest(%(job_ids)s::uuid[]) AS job (id)
                   CROSS JOIN LATERAL (SELECT id, status FROM runs WHERE runs.job_id = job.id
                                        ORDER BY planned_for DESC, runs.id DESC LIMIT %(scan)s) AS newest
                   WHERE newest.status IS NULL
                     AND NOT EXISTS (SELECT FROM ready WHERE ready.run_id = newest.id)
                     AND NOT EXISTS (SELECT FROM waiting WHERE waiting.run_id = newest.id)
                     AND NOT EXISTS (SELECT FROM leases WHERE leases.run_id = newest.id))
 RETURNING id, job_id, workspace_id),
noted AS (
    INSERT INTO events (workspace_id, at, kind, job_id, run_id)
    SELECT ended.workspace_id, %(now)s, 'run.interrupted', ended.job_id, ended.id
      FROM ended JOIN watches ON watches.workspace_id = ended.workspace_id AND watches.until > %(now)s)
SELECT id, job_id FROM ended;

-- name: list_open_runs
-- Unfinished runs, whether their record is open, and whether their timer counts them.
SELECT unfinished.run_id, unfinished.job_id,
       runs.id IS NULL OR runs.status IS NOT NULL AS is_over,
       timers.job_id IS NOT NULL
           AND CASE WHEN unfinished.waits_for = 'turn' THEN timers.waiting > 0
                    WHEN unfinished.exclusive THEN timers.live_run_id IS NOT DISTINCT FROM unfinished.run_id
                    ELSE timers.live > 0 END AS is_known
  FROM (SELECT run_id, job_id, waits_for, exclusive
          FROM ((SELECT run_id, job_id, NULL AS waits_for, exclusive FROM ready WHERE run_id > %(after)s ORDER BY run_id LIMIT %(limit)s)
                UNION ALL
                (SELECT run_id, job_id, NULL, exclusive FROM leases WHERE run_id > %(after)s ORDER BY run_id LIMIT %(limit)s)
                UNION ALL
                (SELECT run_id, job_id, waits_for, exclusive FROM waiting WHERE run_id > %(after)s ORDER BY run_id LIMIT %(limit)s)) AS each
         ORDER BY run_id
         LIMIT %(limit)s) AS unfinished
  LEFT JOIN runs ON runs.id = unfinished.run_id
  LEFT JOIN timers ON timers.job_id = unfinished.job_id
 ORDER BY unfinished.run_id;

-- name: load_definitions
SELECT id, definition FROM jobs WHERE id = ANY (%(job_ids)s);

-- name: set_spec
UPDATE timers SET spec = %(spec)s, version = version + 1 WHERE job_id = %(job_id)s;

-- name: park
UPDATE timers SET due_at = 'infinity', next_at = NULL, version = version + 1 WHERE job_id = %(job_id)s;

-- name: note_rescheduled
-- An audit entry and a notice for each.
WITH noticed AS (
    INSERT INTO notices (workspace_id, event, at, job_id, facts)
    SELECT workspace_id, 'zone_data_changed', %(now)s, job_id,
           jsonb_build_object('reason', 'New ' || %(actor)s || ' moved its next time.', 'before', before_at, 'after', after_at)
      FROM unnest(%(workspace_ids)s::uuid[], %(job_ids)s::uuid[], %(befores)s::timestamptz[], %(afters)s::timestamptz[])
           AS entries (workspace_id, job_id, before_at, after_at))
INSERT INTO audit (workspace_id, id, at, actor, action, object_kind, object_id, before, after)
SELECT workspace_id, id, %(now)s, %(actor)s, 'job.rescheduled', 'job', job_id::text,
       jsonb_build_object('next_run_at', before_at), jsonb_build_object('next_run_at', after_at)
  FROM unnest(%(workspace_ids)s::uuid[], %(ids)s::uuid[], %(job_ids)s::uuid[], %(befores)s::timestamptz[], %(afters)s::timestamptz[])
       AS entries (workspace_id, id, job_id, before_at, after_at);
