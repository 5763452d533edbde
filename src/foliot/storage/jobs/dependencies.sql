-- name: facts
-- The edges of these jobs, each with what its upstream has done lately.
SELECT dependencies.job_id, dependencies.upstream_id, dependencies."on", dependencies.mode, dependencies.delay, dependencies.max_age,
       dependencies.consumed_run_id, timers.live + timers.waiting > 0 AS is_live, timers.last_run_id IS NOT NULL AS has_run,
       timers.last_success_run_id, timers.last_success_at, timers.last_failure_run_id, timers.last_failure_at, timers.last_end_run_id,
       timers.last_end_at
  FROM dependencies JOIN timers ON timers.job_id = dependencies.upstream_id
 WHERE dependencies.job_id = ANY (%(job_ids)s)
 ORDER BY dependencies.job_id, dependencies.upstream_id;

-- name: consume
UPDATE dependencies SET consumed_run_id = used.run_id
  FROM unnest(%(job_ids)s::uuid[], %(upstream_ids)s::uuid[], %(run_ids)s::uuid[]) AS used (job_id, upstream_id, run_id)
 WHERE dependencies.job_id = used.job_id AND dependencies.upstream_id = used.upstream_id;

-- name: lock_graph
-- A cycle can be made by two edits that each see only half of it, so the edges of a workspace are edited one at a time.
SELECT pg_advisory_xact_lock(hashtextextended('foliot.dependencies:' || %(workspace_id)s::uuid, 0));

-- name: graph
SELECT job_id, upstream_id FROM dependencies WHERE workspace_id = %(workspace_id)s ORDER BY job_id, upstream_id;

-- name: around
-- Who would have to be locked: the job, its upstreams as they are, and those it is to have.
SELECT upstream_id AS job_id FROM dependencies WHERE job_id = %(job_id)s;

-- name: dependents
SELECT dependencies.job_id, jobs.name
  FROM dependencies JOIN jobs ON jobs.id = dependencies.job_id
 WHERE dependencies.upstream_id = %(job_id)s
 ORDER BY dependencies.job_id;

-- name: of_upstreams
SELECT job_id FROM dependencies WHERE upstream_id = ANY (%(job_ids)s);

-- name: names
SELECT id, name, status FROM jobs WHERE id = ANY (%(job_ids)s) AND purged_at IS NULL;

-- name: unlink
DELETE FROM dependencies WHERE job_id = %(job_id)s AND upstream_id <> ALL (%(upstream_ids)s);

-- name: link
-- An edge that stays keeps its mark. A new trigger counts from now on: what its upstream did before it existed starts nothing.
INSERT INTO dependencies (workspace_id, job_id, upstream_id, "on", mode, delay, max_age, consumed_run_id)
SELECT %(workspace_id)s, %(job_id)s, edge.upstream_id, edge."on", edge.mode, edge.delay, edge.max_age,
       CASE WHEN edge.mode = 'gate' THEN NULL
            WHEN edge."on" = 'success' THEN timers.last_success_run_id
            WHEN edge."on" = 'failure' THEN timers.last_failure_run_id
            ELSE timers.last_end_run_id END
  FROM unnest(%(upstream_ids)s::uuid[], %(on)s::text[], %(mode)s::text[], %(delay)s::interval[], %(max_age)s::interval[])
       AS edge (upstream_id, "on", mode, delay, max_age)
  JOIN timers ON timers.job_id = edge.upstream_id
    ON CONFLICT (job_id, upstream_id)
    DO UPDATE SET "on" = EXCLUDED."on", mode = EXCLUDED.mode, delay = EXCLUDED.delay, max_age = EXCLUDED.max_age;

-- name: mark_timers
-- What ticking and settling read to know whether they must look at edges at all.
UPDATE timers
   SET has_gate = EXISTS (SELECT FROM dependencies WHERE dependencies.job_id = timers.job_id AND mode = 'gate'),
       has_dependents = EXISTS (SELECT FROM dependencies WHERE dependencies.upstream_id = timers.job_id)
 WHERE timers.job_id = ANY (%(job_ids)s);
