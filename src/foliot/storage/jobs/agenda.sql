-- name: list_upcoming
-- Starts from jobs, which has indexes by workspace; an index of timers by workspace would be written at every fire. The timer of a
-- frozen job holds the end of the freeze or nothing, so with `held` its cursor gives the order.
SELECT jobs.id, jobs.name, jobs.paused_until, timers.spec, timers.schedule_rev, timers.cursor_at AS cursor, timers.next_at,
       timers.runs_created, timers.skip_next IS NOT NULL AS skip_next, timers.skip_until,
       CASE WHEN jobs.status = 'paused' THEN jobs.paused_until WHEN %(held)s THEN timers.cursor_at ELSE timers.next_at END AS since
  FROM jobs JOIN timers ON timers.job_id = jobs.id
 WHERE jobs.workspace_id = %(workspace_id)s
   AND (jobs.status IN ('active', 'pending') AND (timers.next_at < %(end)s OR %(held)s)
        OR jobs.status = 'paused' AND jobs.paused_until < %(end)s)
   AND (%(owner_id)s::uuid IS NULL OR jobs.owner_id = %(owner_id)s)
   AND (%(job_id)s::uuid IS NULL OR jobs.id = %(job_id)s)
   AND (%(queue)s::text IS NULL OR jobs.queue = %(queue)s)
   AND (%(tag)s::text IS NULL OR %(tag)s = ANY (jobs.tags))
 ORDER BY since, jobs.id
 LIMIT %(limit)s;

-- name: count_firing
-- From the index jobs_by_status alone, without a filter.
SELECT count(*) FROM jobs
 WHERE workspace_id = %(workspace_id)s AND (status IN ('active', 'pending') OR status = 'paused' AND paused_until < %(end)s)
   AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s)
   AND (%(job_id)s::uuid IS NULL OR id = %(job_id)s)
   AND (%(queue)s::text IS NULL OR queue = %(queue)s)
   AND (%(tag)s::text IS NULL OR %(tag)s = ANY (tags));

-- name: sample_firing
-- Every n-th job of those. The order is mixed, so that the first part of them is a sample too.
SELECT jobs.id, jobs.name, jobs.paused_until, timers.spec, timers.schedule_rev, timers.cursor_at AS cursor, timers.next_at,
       timers.runs_created, timers.skip_next IS NOT NULL AS skip_next, timers.skip_until, timers.cursor_at AS since
  FROM (SELECT id, row_number() OVER (ORDER BY id) AS place FROM jobs
         WHERE workspace_id = %(workspace_id)s AND (status IN ('active', 'pending') OR status = 'paused' AND paused_until < %(end)s)
           AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s)
           AND (%(job_id)s::uuid IS NULL OR id = %(job_id)s)
           AND (%(queue)s::text IS NULL OR queue = %(queue)s)
           AND (%(tag)s::text IS NULL OR %(tag)s = ANY (tags))) AS numbered
  JOIN jobs ON jobs.id = numbered.id
  JOIN timers ON timers.job_id = numbered.id
 WHERE numbered.place %% %(every)s = 0
 ORDER BY numbered.place * 7919 %% 10007, numbered.id;

-- name: load_timer_share
-- The planner's estimate of all timers, and this workspace's jobs, counted up to the share that makes list_upcoming_by_due cheaper.
SELECT known.timers, (SELECT count(*) FROM (SELECT FROM jobs WHERE workspace_id = %(workspace_id)s
                                            LIMIT LEAST(%(most)s, GREATEST(%(least)s, known.timers / %(part)s)::bigint)) AS counted) AS own
  FROM (SELECT GREATEST(reltuples, 0) AS timers FROM pg_class WHERE oid = 'foliot.timers'::regclass) AS known;

-- name: list_upcoming_by_due
-- For a workspace with a large share of all timers: reads the index timers_due in its order. A timer is never due after its job's
-- next run.
SELECT jobs.id, jobs.name, NULL::timestamptz AS paused_until, timers.spec, timers.schedule_rev, timers.cursor_at AS cursor, timers.next_at,
       timers.runs_created, timers.skip_next IS NOT NULL AS skip_next, timers.skip_until, timers.due_at AS since
  FROM (SELECT * FROM timers
         WHERE workspace_id = %(workspace_id)s AND due_at < %(end)s AND next_at < %(end)s AND status IN ('active', 'pending')
         ORDER BY due_at
         LIMIT %(limit)s) AS timers
  JOIN jobs ON jobs.id = timers.job_id;

-- name: list_upcoming_after_pauses
-- Paused jobs that resume at a set time. Relies on jobs_paused_until.
SELECT jobs.id, jobs.name, jobs.paused_until, timers.spec, timers.schedule_rev, timers.cursor_at AS cursor, timers.next_at,
       timers.runs_created, timers.skip_next IS NOT NULL AS skip_next, timers.skip_until, jobs.paused_until AS since
  FROM jobs JOIN timers ON timers.job_id = jobs.id
 WHERE jobs.workspace_id = %(workspace_id)s AND jobs.status = 'paused' AND jobs.paused_until < %(end)s
 ORDER BY jobs.paused_until
 LIMIT %(limit)s;

-- name: list_first_due
-- Relies on timers_due.
SELECT due_at, next_at FROM timers
 WHERE workspace_id = %(workspace_id)s AND due_at < 'infinity' AND status IN ('active', 'pending')
 ORDER BY due_at
 LIMIT %(limit)s;

-- name: find_next_run
-- Starts from jobs, which has indexes by workspace.
SELECT min(timers.next_at) AS next_at
  FROM jobs JOIN timers ON timers.job_id = jobs.id
 WHERE jobs.workspace_id = %(workspace_id)s AND jobs.status IN ('active', 'pending')
   AND (%(owner_id)s::uuid IS NULL OR jobs.owner_id = %(owner_id)s);

-- name: load_usual_durations
-- The median of the newest attempted runs, from at most `scan` records of each job. Relies on runs_newest_of_a_job.
SELECT requested.job_id, percentile_disc(0.5) WITHIN GROUP (ORDER BY newest.duration) AS duration
  FROM unnest(%(job_ids)s::uuid[]) AS requested (job_id)
 CROSS JOIN LATERAL (SELECT finished_at - started_at AS duration, status, attempt_count FROM runs
                      WHERE runs.job_id = requested.job_id AND runs.workspace_id = %(workspace_id)s
                      ORDER BY planned_for DESC, id DESC LIMIT %(scan)s) AS newest
 WHERE newest.status = 'succeeded' AND newest.attempt_count > 0
 GROUP BY requested.job_id;
