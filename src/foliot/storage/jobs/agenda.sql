-- name: ahead
-- Jobs of the workspace with times ahead, the soonest first. They are found through jobs, which knows workspaces; an index of timers by
-- workspace would be written at every fire. A timer that a freeze holds says when the freeze ends, or nothing: with `held` its place
-- is where it was before.
SELECT jobs.id, jobs.name, jobs.paused_until, timers.spec, timers.schedule_rev, timers.cursor_at, timers.next_at, timers.runs_created,
       timers.skip_next,
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

-- name: share
-- Of all timers, how many are this workspace's: counted up to the tenth part that makes the walk below worth it.
SELECT known.timers, (SELECT count(*) FROM (SELECT FROM jobs WHERE workspace_id = %(workspace_id)s
                                            LIMIT LEAST(%(most)s, GREATEST(%(least)s, known.timers / %(part)s)::bigint)) AS counted) AS own
  FROM (SELECT GREATEST(reltuples, 0) AS timers FROM pg_class WHERE oid = 'foliot.timers'::regclass) AS known;

-- name: ahead_along_due
-- As `ahead`, where most timers belong to the workspace: along timers_due, which names them in their order. A timer is never due after
-- its job runs next.
SELECT jobs.id, jobs.name, NULL::timestamptz AS paused_until, timers.spec, timers.schedule_rev, timers.cursor_at, timers.next_at,
       timers.runs_created, timers.skip_next, timers.due_at AS since
  FROM (SELECT * FROM timers
         WHERE workspace_id = %(workspace_id)s AND due_at < %(end)s AND next_at < %(end)s AND status IN ('active', 'pending')
         ORDER BY due_at
         LIMIT %(limit)s) AS timers
  JOIN jobs ON jobs.id = timers.job_id;

-- name: ahead_after_pauses
-- Those whose pause ends by itself, along jobs_paused_until.
SELECT jobs.id, jobs.name, jobs.paused_until, timers.spec, timers.schedule_rev, timers.cursor_at, timers.next_at, timers.runs_created,
       timers.skip_next, jobs.paused_until AS since
  FROM jobs JOIN timers ON timers.job_id = jobs.id
 WHERE jobs.workspace_id = %(workspace_id)s AND jobs.status = 'paused' AND jobs.paused_until < %(end)s
 ORDER BY jobs.paused_until
 LIMIT %(limit)s;

-- name: soonest
SELECT due_at, next_at FROM timers
 WHERE workspace_id = %(workspace_id)s AND due_at < 'infinity' AND status IN ('active', 'pending')
 ORDER BY due_at
 LIMIT %(limit)s;

-- name: next_due
-- Found through jobs, which knows workspaces.
SELECT min(timers.next_at) AS next_at
  FROM jobs JOIN timers ON timers.job_id = jobs.id
 WHERE jobs.workspace_id = %(workspace_id)s AND jobs.status IN ('active', 'pending')
   AND (%(owner_id)s::uuid IS NULL OR jobs.owner_id = %(owner_id)s);

-- name: expected
-- How long the runs of these jobs take: the middle of the newest that were attempted, among no more than `scan` records of each.
SELECT asked.job_id, percentile_disc(0.5) WITHIN GROUP (ORDER BY newest.seconds) AS seconds
  FROM unnest(%(job_ids)s::uuid[]) AS asked (job_id)
 CROSS JOIN LATERAL (SELECT extract(epoch FROM finished_at - started_at)::float8 AS seconds, status, attempt_count FROM runs
                      WHERE runs.job_id = asked.job_id AND runs.workspace_id = %(workspace_id)s
                      ORDER BY planned_for DESC, id DESC LIMIT %(scan)s) AS newest
 WHERE newest.status = 'succeeded' AND newest.attempt_count > 0
 GROUP BY asked.job_id;
