-- name: load_facts
-- Each edge with the latest end of its upstream that satisfies its condition. Reads timers, which keep those: no run is read.
SELECT dependencies.job_id, dependencies.upstream_id AS "facts.edge.upstream", dependencies."on" AS "facts.edge.on",
       dependencies.mode AS "facts.edge.mode", dependencies.delay AS "facts.edge.delay", dependencies.max_age AS "facts.edge.max_age",
       CASE dependencies."on" WHEN 'success' THEN last_success_run_id WHEN 'failure' THEN last_failure_run_id
                              ELSE last_end_run_id END AS "facts.latest.run_id",
       CASE dependencies."on" WHEN 'success' THEN last_success_at WHEN 'failure' THEN last_failure_at ELSE last_end_at END AS "facts.latest.at",
       dependencies.consumed_run_id AS "facts.consumed_run_id", timers.live + timers.waiting > 0 AS "facts.upstream_is_live",
       timers.last_run_id IS NOT NULL AS "facts.upstream_has_run"
  FROM dependencies JOIN timers ON timers.job_id = dependencies.upstream_id
 WHERE dependencies.job_id = ANY (%(job_ids)s)
 ORDER BY dependencies.job_id, dependencies.upstream_id;

-- name: consume
UPDATE dependencies SET consumed_run_id = used.run_id
  FROM unnest(%(job_ids)s::uuid[], %(upstream_ids)s::uuid[], %(run_ids)s::uuid[]) AS used (job_id, upstream_id, run_id)
 WHERE dependencies.job_id = used.job_id AND dependencies.upstream_id = used.upstream_id;

-- name: lock_graph
-- Two concurrent edits could each see half of a cycle, so edges of a workspace are edited one at a time.
SELECT pg_advisory_xact_lock(hashtextextended('foliot.dependencies:' || %(workspace_id)s::uuid, 0));

-- name: list_edges
SELECT job_id, upstream_id FROM dependencies WHERE workspace_id = %(workspace_id)s ORDER BY job_id, upstream_id;

-- name: list_upstreams
SELECT upstream_id AS job_id FROM dependencies WHERE job_id = %(job_id)s;

-- name: list_dependents
SELECT dependencies.job_id, jobs.name
  FROM dependencies JOIN jobs ON jobs.id = dependencies.job_id
 WHERE dependencies.upstream_id = %(job_id)s
 ORDER BY dependencies.job_id;

-- name: of_upstreams
SELECT job_id FROM dependencies WHERE upstream_id = ANY (%(job_ids)s);

-- name: load_names
SELECT id, name, status FROM jobs WHERE id = ANY (%(job_ids)s) AND purged_at IS NULL;

-- name: unlink
DELETE FROM dependencies WHERE job_id = %(job_id)s AND upstream_id <> ALL (%(upstream_ids)s);

-- name: link
-- An edge that stays keeps its consumed_run_id. A new trigger starts with the upstream's latest end as consumed: ends from before
-- the edge start nothing.
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
-- Tick and settlement read these two flags and load edges only where one is set.
UPDATE timers
   SET has_gate = EXISTS (SELECT FROM dependencies WHERE dependencies.job_id = timers.job_id AND mode = 'gate'),
       has_dependents = EXISTS (SELECT FROM dependencies WHERE dependencies.upstream_id = timers.job_id)
 WHERE timers.job_id = ANY (%(job_ids)s);
