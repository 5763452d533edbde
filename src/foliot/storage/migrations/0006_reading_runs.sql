-- What it takes to look through the runs of a workspace by their planned time.

-- A workspace's runs are read by id, which begins with the instant their record was made. No record is made before its planned time, so a
-- lower bound of planned times is one of ids. An upper bound is one too, but for records made long after their planned time:
-- backfills, runs made again, what was caught up. Only those are in here, so firing in time never writes to it, and neither
-- column changes when a run ends.
CREATE INDEX runs_recorded_late ON runs (workspace_id, id DESC, planned_for) WHERE created_at - planned_for > interval '5 minutes';

CREATE OR REPLACE VIEW ledger WITH (security_invoker = true) AS
SELECT runs.workspace_id, runs.id, runs.job_id, runs.number,
       COALESCE(runs.status, CASE WHEN leases.run_id IS NOT NULL THEN 'running' WHEN waiting.run_id IS NOT NULL THEN 'waiting'
                                  ELSE 'ready' END) AS status,
       runs.skip_reason, runs.note, runs.trigger, runs.planned_for, runs.planned_key, runs.schedule_rev, runs.planned_until, runs.count,
       runs.created_at, COALESCE(runs.started_at, leases.started_at, ready.started_at, waiting.started_at) AS started_at,
       runs.finished_at, COALESCE(leases.attempts, ready.attempts, waiting.attempts, runs.attempt_count) AS attempt_count,
       COALESCE(leases.worker_id, runs.worker_id) AS worker_id, runs.input, runs.output,
       COALESCE(runs.error, leases.last_error, ready.last_error, waiting.last_error) AS error,
       COALESCE(jobs.definition -> 'spec' -> 'schedule' ->> 'timezone', 'UTC') AS timezone,
       jobs.name AS job_name, runs.triggered_by, runs.retry_of, runs.upstream_run_id, leases.cancel_requested_at
  FROM runs
  LEFT JOIN jobs ON jobs.id = runs.job_id
  LEFT JOIN leases ON leases.run_id = runs.id
  LEFT JOIN ready ON ready.run_id = runs.id
  LEFT JOIN waiting ON waiting.run_id = runs.id;
