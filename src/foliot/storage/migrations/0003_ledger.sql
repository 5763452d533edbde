-- What it takes to read the ledger, to add it up and to prune it. Firing and settling write to none of this: the one index on
-- runs is partial and holds only gap records.

CREATE INDEX runs_gaps_of_a_job ON runs (job_id, planned_until) WHERE planned_until IS NOT NULL;

-- A job is of one workspace. Without being told, the planner takes the policy's condition for a second filter that leaves few rows, and
-- reads a whole workspace's index to apply it.
CREATE STATISTICS runs_of_a_job_are_of_one_workspace (dependencies) ON job_id, workspace_id FROM runs;

ALTER TABLE daily ADD COLUMN records bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN daily.records IS 'Rows of the ledger. What pruning removed is still counted here.';
COMMENT ON COLUMN daily.day IS 'The UTC day on which the record was made.';
CREATE INDEX daily_of_a_workspace ON daily (workspace_id, day);


-- Runs that were still open when the roll-up went by. Each is counted once, when it has ended; until then it is not pruned.
CREATE TABLE uncounted (
    workspace_id uuid NOT NULL,
    run_id       uuid NOT NULL,
    job_id       uuid NOT NULL,
    CONSTRAINT uncounted_pkey PRIMARY KEY (run_id)
);
CREATE INDEX uncounted_of_a_job ON uncounted (job_id);
ALTER TABLE uncounted ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT ON uncounted TO foliot_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON uncounted TO foliot_engine;
CREATE POLICY uncounted_own_workspace ON uncounted FOR SELECT TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
CREATE POLICY uncounted_engine ON uncounted TO foliot_engine USING (true) WITH CHECK (true);


-- How far the janitor's rounds have come. A row's lock is the right to go on: who does not get it leaves the round to the other.
CREATE TABLE rounds (
    name     text NOT NULL,
    position uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    mark     text,
    CONSTRAINT rounds_pkey PRIMARY KEY (name)
);
COMMENT ON COLUMN rounds.position IS 'The last id that was looked at; all zeros before the first.';
COMMENT ON COLUMN rounds.mark IS 'What the last complete round was made with, such as a version of the zone data.';
INSERT INTO rounds (name) VALUES ('roll_up'), ('prune'), ('timers'), ('runs'), ('zone_data');
ALTER TABLE rounds ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT ON rounds TO foliot_app;
GRANT SELECT, UPDATE (position, mark) ON rounds TO foliot_engine;
CREATE POLICY rounds_read ON rounds FOR SELECT TO foliot_app, foliot_engine USING (true);
CREATE POLICY rounds_engine ON rounds FOR UPDATE TO foliot_engine USING (true) WITH CHECK (true);


-- A run as people read it. An open run has one row in ready, waiting or leases, and which of them says what it is doing.
CREATE VIEW ledger WITH (security_invoker = true) AS
SELECT runs.workspace_id, runs.id, runs.job_id, runs.number,
       COALESCE(runs.status, CASE WHEN leases.run_id IS NOT NULL THEN 'running' WHEN waiting.run_id IS NOT NULL THEN 'waiting'
                                  ELSE 'ready' END) AS status,
       runs.skip_reason, runs.note, runs.trigger, runs.planned_for, runs.planned_key, runs.schedule_rev, runs.planned_until, runs.count,
       runs.created_at, COALESCE(runs.started_at, leases.started_at, ready.started_at, waiting.started_at) AS started_at,
       runs.finished_at, COALESCE(leases.attempts, ready.attempts, waiting.attempts, runs.attempt_count) AS attempt_count,
       COALESCE(leases.worker_id, runs.worker_id) AS worker_id, runs.input, runs.output,
       COALESCE(runs.error, leases.last_error, ready.last_error, waiting.last_error) AS error,
       COALESCE(jobs.definition -> 'spec' -> 'schedule' ->> 'timezone', 'UTC') AS timezone
  FROM runs
  LEFT JOIN jobs ON jobs.id = runs.job_id
  LEFT JOIN leases ON leases.run_id = runs.id
  LEFT JOIN ready ON ready.run_id = runs.id
  LEFT JOIN waiting ON waiting.run_id = runs.id;
GRANT SELECT ON ledger TO foliot_app, foliot_engine;


-- What each ended record adds to its day. A gap record is one record and as many skips as it counts; past counting it adds what it
-- was counted to. The lag of a backfill is measured from when it was asked for: its planned time had passed long before.
CREATE VIEW tallies WITH (security_invoker = true) AS
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
 WHERE status IS NOT NULL;
GRANT SELECT ON tallies TO foliot_app, foliot_engine;
