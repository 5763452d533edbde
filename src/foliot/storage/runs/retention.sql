-- name: list_jobs
-- The caller skips jobs that never had more records than keep_last: for most jobs no run is read.
SELECT jobs.id AS job_id, COALESCE(jobs.definition -> 'retention', '{}') AS retention, timers.number
  FROM jobs JOIN timers ON timers.job_id = jobs.id
 WHERE jobs.id > %(after)s
 ORDER BY jobs.id
 LIMIT %(limit)s;

-- name: prune
-- Reads the old end of runs_newest_of_a_job for each job, unordered: ORDER BY would read all candidates to delete a few. `edge` is
-- the oldest record that keep_last protects. A run never ends before its planned time, so `planned_for` bounds the scan and
-- `finished_at` decides. Only records that job_days has counted are deleted. SKIP LOCKED: settlement and rival janitors go on.
WITH requested AS (
    SELECT * FROM unnest(%(job_ids)s::uuid[], %(horizons)s::timestamptz[], %(keep_lasts)s::int[], %(stricts)s::boolean[])
               AS requested (job_id, horizon, keep_last, is_strict)),
doomed AS MATERIALIZED (
    SELECT old.id
      FROM requested
      LEFT JOIN LATERAL (
           SELECT planned_for, id FROM runs WHERE runs.job_id = requested.job_id
            ORDER BY planned_for DESC, id DESC OFFSET requested.keep_last - 1 LIMIT 1) AS edge ON true
     CROSS JOIN LATERAL (
           SELECT runs.id FROM runs
            WHERE runs.job_id = requested.job_id
              AND runs.planned_for <= CASE WHEN requested.is_strict THEN GREATEST(requested.horizon, edge.planned_for)
                                           WHEN edge.id IS NOT NULL THEN LEAST(requested.horizon, edge.planned_for) END
              AND runs.status IS NOT NULL
              AND CASE WHEN requested.is_strict THEN runs.finished_at < requested.horizon
                                                 OR (runs.planned_for, runs.id) < (edge.planned_for, edge.id)
                       ELSE runs.finished_at < requested.horizon AND (runs.planned_for, runs.id) < (edge.planned_for, edge.id) END
              AND runs.id <= (SELECT position FROM scans WHERE name = 'roll_up')
              AND NOT EXISTS (SELECT FROM uncounted_runs WHERE uncounted_runs.run_id = runs.id)
            LIMIT %(most)s
              FOR UPDATE OF runs SKIP LOCKED) AS old
     LIMIT %(most)s),
tries AS (DELETE FROM attempts USING doomed WHERE attempts.run_id = doomed.id RETURNING attempts.run_id),
used AS (DELETE FROM run_usage USING doomed WHERE run_usage.run_id = doomed.id),
lines AS (DELETE FROM log_chunks USING doomed WHERE log_chunks.run_id = doomed.id),
heads AS (DELETE FROM logs USING doomed WHERE logs.run_id = doomed.id),
files AS (DELETE FROM artifacts USING doomed WHERE artifacts.run_id = doomed.id RETURNING artifacts.id),
pieces AS (DELETE FROM artifact_chunks USING files WHERE artifact_chunks.artifact_id = files.id),
gone AS (DELETE FROM runs USING doomed WHERE runs.id = doomed.id RETURNING runs.id)
SELECT (SELECT count(*) FROM gone) AS runs, (SELECT count(*) FROM tries) AS attempts;
