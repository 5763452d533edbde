-- name: facts
-- The edges of these jobs, each with what its upstream has done lately.
SELECT dependencies.job_id, dependencies.upstream_id, dependencies."on", dependencies.mode, dependencies.delay, dependencies.max_age,
       dependencies.consumed_run_id, timers.live + timers.waiting > 0 AS is_live, timers.last_run_id IS NOT NULL AS has_run,
       timers.last_success_run_id, timers.last_success_at, timers.last_failure_run_id, timers.last_failure_at
  FROM dependencies JOIN timers ON timers.job_id = dependencies.upstream_id
 WHERE dependencies.job_id = ANY (%(job_ids)s);

-- name: consume
UPDATE dependencies SET consumed_run_id = used.run_id
  FROM unnest(%(job_ids)s::uuid[], %(upstream_ids)s::uuid[], %(run_ids)s::uuid[]) AS used (job_id, upstream_id, run_id)
 WHERE dependencies.job_id = used.job_id AND dependencies.upstream_id = used.upstream_id;
