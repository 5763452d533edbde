-- What the schedule did last on each job, and the revision of the job that each attempt ran.

ALTER TABLE timers
    ADD COLUMN last_fire_status     text,
    ADD COLUMN last_fire_run_id     uuid,
    ADD COLUMN schedule_error_count bigint NOT NULL DEFAULT 0,
    ADD COLUMN failed_attempt_count bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN timers.last_fire_status IS 'What became of the planned time recorded last: queued, skipped or scheduler_failed.';
COMMENT ON COLUMN timers.last_fire_run_id IS 'The record of that planned time.';
COMMENT ON COLUMN timers.failed_attempt_count IS 'Attempts that failed, timed out or were lost, those with a retry included.';

-- NULL: an attempt of an older version. The payload of the revision and the run's own input are the input of the attempt.
ALTER TABLE leases ADD COLUMN revision integer;
ALTER TABLE runs ADD COLUMN revision integer;
ALTER TABLE attempts ADD COLUMN revision integer;
COMMENT ON COLUMN leases.revision IS 'The revision of the job that the worker was given.';
COMMENT ON COLUMN runs.revision IS 'Of its last attempt.';

CREATE OR REPLACE VIEW run_records WITH (security_invoker = true) AS
SELECT runs.workspace_id, runs.id, runs.job_id, runs.number,
       COALESCE(runs.status, CASE WHEN leases.run_id IS NOT NULL THEN 'running' WHEN waiting.run_id IS NOT NULL THEN 'waiting'
                                  ELSE 'ready' END) AS status,
       runs.skip_reason, runs.note, runs.trigger, runs.planned_for, runs.planned_key, runs.schedule_rev, runs.planned_until, runs.count,
       runs.created_at, COALESCE(runs.started_at, leases.started_at, ready.started_at, waiting.started_at) AS started_at,
       runs.finished_at, COALESCE(leases.attempts, ready.attempts, waiting.attempts, runs.attempt_count) AS attempt_count,
       COALESCE(leases.worker_id, runs.worker_id) AS worker_id, runs.input, runs.output,
       COALESCE(runs.error, leases.last_error, ready.last_error, waiting.last_error) AS error,
       COALESCE(jobs.definition -> 'spec' -> 'schedule' ->> 'timezone', 'UTC') AS timezone,
       jobs.name AS job_name, runs.triggered_by, runs.retry_of, runs.upstream_run_id, leases.cancel_requested_at,
       COALESCE(leases.revision, runs.revision) AS revision
  FROM runs
  LEFT JOIN jobs ON jobs.id = runs.job_id
  LEFT JOIN leases ON leases.run_id = runs.id
  LEFT JOIN ready ON ready.run_id = runs.id
  LEFT JOIN waiting ON waiting.run_id = runs.id;
