-- The history of another scheduler is shown and not counted: figures are those of the runs that were executed here.
CREATE OR REPLACE VIEW run_counts WITH (security_invoker = true) AS
SELECT workspace_id, id, job_id, planned_for, (created_at AT TIME ZONE 'UTC')::date AS day,
       (status <> 'skipped' AND attempt_count > 0)::int AS runs,
       (status = 'succeeded')::int AS successes,
       (status IN ('failed', 'timed_out', 'interrupted') AND attempt_count > 0)::int AS failures,
       CASE WHEN status <> 'skipped' THEN 0 WHEN planned_until IS NULL THEN 1 ELSE COALESCE(count, 10000) END AS skips,
       CASE WHEN status <> 'skipped' THEN extract(epoch FROM finished_at - started_at)::float8 END AS seconds,
       CASE WHEN status <> 'skipped'
            THEN extract(epoch FROM started_at - CASE trigger WHEN 'backfill' THEN created_at ELSE planned_for END)::float8
            END AS lag_seconds
  FROM runs
 WHERE status IS NOT NULL AND trigger <> 'import';
