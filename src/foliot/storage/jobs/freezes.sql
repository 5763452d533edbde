-- name: list_since
-- Freezes in force at any time from `since` to `now`: usually none.
SELECT {columns}
  FROM freezes
 WHERE start_at <= %(now)s AND (end_at IS NULL OR end_at > %(since)s);

-- name: insert
INSERT INTO freezes (workspace_id, id, scope, start_at, end_at, after, per_minute, running, reason, created_by, created_at,
                     is_start_pending)
VALUES (%(workspace_id)s, %(id)s, %(scope)s, %(start_at)s, %(end_at)s, %(after)s, %(per_minute)s, %(running)s, %(reason)s, %(by)s,
        %(now)s, %(start_at)s > %(now)s);

-- name: lock
SELECT {columns}, created_by, created_at, lifted_by, lifted_at
  FROM freezes WHERE id = %(id)s FOR UPDATE;

-- name: get
SELECT {columns}, created_by, created_at, lifted_by, lifted_at
  FROM freezes WHERE id = %(id)s;

-- name: page
SELECT {columns}, created_by, created_at, lifted_by, lifted_at
  FROM freezes
 WHERE (%(ended)s OR end_at IS NULL OR end_at > %(now)s) AND id < %(before)s
 ORDER BY id DESC LIMIT %(limit)s;

-- name: list_owned
SELECT id::text FROM jobs WHERE id = ANY (%(job_ids)s::uuid[]) AND owner_id = %(owner_id)s;

-- name: lift
UPDATE freezes
   SET original_end_at = COALESCE(end_at, 'infinity'), end_at = %(end_at)s, lifted_by = %(by)s, lifted_at = %(now)s
 WHERE id = %(id)s;

-- name: delete
DELETE FROM freezes WHERE id = %(id)s;

-- name: list_covered_with_work
-- Covered jobs with a run that may be about to start: one that is ready or waits at a limit, an attempt that may end and be
-- repeated, a timer that is due and perhaps in a tick at this moment.
SELECT jobs.id FROM freezes JOIN jobs ON jobs.workspace_id = freezes.workspace_id
 WHERE freezes.id = %(id)s AND jobs.id > %(after)s AND freeze_covers(freezes.scope, jobs.id, jobs.queue, jobs.tags)
   AND jobs.id IN (SELECT job_id FROM ready WHERE ready.workspace_id = %(workspace_id)s
                    UNION ALL SELECT job_id FROM leases WHERE leases.workspace_id = %(workspace_id)s
                    UNION ALL SELECT job_id FROM waiting WHERE waiting.workspace_id = %(workspace_id)s AND waits_for = 'limit'
                    UNION ALL SELECT job_id FROM timers WHERE timers.workspace_id = %(workspace_id)s AND due_at <= %(now)s)
 ORDER BY jobs.id LIMIT %(limit)s;

-- name: list_startable_while_frozen
-- Runs that could start during a freeze: it has just started, or their transaction did not see it yet. A manual run requested
-- during the freeze is meant to start all the same.
SELECT DISTINCT startable.job_id
  FROM freezes
  JOIN (SELECT workspace_id, job_id, run_id, trigger FROM ready
         UNION ALL SELECT workspace_id, job_id, run_id, trigger FROM waiting WHERE waits_for = 'limit') AS startable USING (workspace_id)
  JOIN jobs ON jobs.id = startable.job_id
 WHERE freezes.start_at <= %(now)s AND (freezes.end_at IS NULL OR freezes.end_at > %(now)s)
   AND freeze_covers(freezes.scope, jobs.id, jobs.queue, jobs.tags)
   AND (startable.trigger IN ('schedule', 'dependency', 'backfill')
        OR EXISTS (SELECT FROM runs WHERE runs.id = startable.run_id AND runs.created_at < freezes.start_at))
 LIMIT %(limit)s;

-- name: mark_started
UPDATE freezes SET is_start_pending = false WHERE is_start_pending AND start_at <= %(now)s;

-- name: list_startable
SELECT run_id, job_id, trigger, true AS is_ready FROM ready WHERE job_id = ANY (%(job_ids)s)
 UNION ALL
SELECT run_id, job_id, trigger, false FROM waiting WHERE job_id = ANY (%(job_ids)s) AND waits_for = 'limit';

-- name: lock_runs_to_stop
-- SKIP LOCKED: a lease that another transaction settles needs no cancel.
SELECT leases.run_id
  FROM freezes
  JOIN leases ON leases.workspace_id = freezes.workspace_id AND leases.cancel_requested_at IS NULL
  JOIN jobs ON jobs.id = leases.job_id
 WHERE freezes.running = 'stop' AND freezes.start_at <= %(now)s AND (freezes.end_at IS NULL OR freezes.end_at > %(now)s)
   AND freeze_covers(freezes.scope, jobs.id, jobs.queue, jobs.tags)
   AND (leases.trigger IN ('schedule', 'dependency', 'backfill')
        OR EXISTS (SELECT FROM runs WHERE runs.id = leases.run_id AND runs.created_at < freezes.start_at))
 ORDER BY leases.run_id
 LIMIT %(limit)s
   FOR UPDATE OF leases SKIP LOCKED;

-- name: list_runs_to_release
-- Runs that wait for a freeze though none covers them any more, and the freeze that covered them last. Relies on waiting_for_a_time.
SELECT waiting.run_id, waiting.job_id, last.id AS freeze_id, last.per_minute
  FROM waiting
  JOIN jobs ON jobs.id = waiting.job_id
  LEFT JOIN LATERAL (
       SELECT id, CASE WHEN after = 'all' THEN per_minute END AS per_minute FROM freezes
        WHERE freezes.workspace_id = waiting.workspace_id AND freezes.start_at <= %(now)s AND freezes.end_at <= %(now)s
          AND freeze_covers(freezes.scope, jobs.id, jobs.queue, jobs.tags)
        ORDER BY end_at DESC LIMIT 1) AS last ON true
 WHERE waits_for = 'freeze'
   AND NOT EXISTS (SELECT FROM freezes
                    WHERE freezes.workspace_id = waiting.workspace_id AND freezes.start_at <= %(now)s
                      AND (freezes.end_at IS NULL OR freezes.end_at > %(now)s)
                      AND freeze_covers(freezes.scope, jobs.id, jobs.queue, jobs.tags))
 ORDER BY waiting.position LIMIT %(limit)s;

-- name: reserve_slots
-- The row lock of the update gives each transaction its own start times.
UPDATE freezes SET paced_until = GREATEST(COALESCE(paced_until, %(now)s), %(now)s) + %(takes)s
 WHERE id = %(id)s
RETURNING paced_until - %(takes)s;

-- name: find_lifted
-- Relies on freezes_to_thaw.
SELECT id, thawed_to FROM freezes
 WHERE original_end_at IS NOT NULL AND thawed_at IS NULL AND end_at <= %(now)s
 ORDER BY end_at LIMIT 1;

-- name: list_held_timers
-- Timers that are due at the end that this freeze had before it was lifted.
SELECT timers.job_id
  FROM freezes
  JOIN timers ON timers.workspace_id = freezes.workspace_id AND timers.due_at = freezes.original_end_at AND timers.job_id > %(after)s
  JOIN jobs ON jobs.id = timers.job_id
 WHERE freezes.id = %(id)s AND freeze_covers(freezes.scope, jobs.id, jobs.queue, jobs.tags) AND timers.status IN ('active', 'pending')
 ORDER BY timers.job_id LIMIT %(limit)s;

-- name: store_thaw_progress
UPDATE freezes SET thawed_to = GREATEST(thawed_to, %(to)s), thawed_at = CASE WHEN %(done)s THEN %(now)s END WHERE id = %(id)s;

-- name: list_covered
-- For a preview: the scope need not be a freeze yet.
SELECT jobs.id, count(*) OVER ()
  FROM jobs
 WHERE status IN ('active', 'pending') AND freeze_covers(%(scope)s, id, queue, tags)
 ORDER BY id LIMIT %(limit)s;

-- name: count_covered_runs
SELECT (SELECT count(*) FROM ready JOIN jobs ON jobs.id = ready.job_id
         WHERE ready.workspace_id = %(workspace_id)s AND freeze_covers(%(scope)s, jobs.id, jobs.queue, jobs.tags)) AS ready,
       (SELECT count(*) FROM leases JOIN jobs ON jobs.id = leases.job_id
         WHERE leases.workspace_id = %(workspace_id)s AND freeze_covers(%(scope)s, jobs.id, jobs.queue, jobs.tags)) AS running;
