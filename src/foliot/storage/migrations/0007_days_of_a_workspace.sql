-- The days of a whole workspace, added up beside those of its jobs: a workspace of a hundred thousand jobs has as many rows a day in
-- `daily`, and its statistics are looked at often.
CREATE TABLE workspace_days (
    workspace_id uuid    NOT NULL,
    day          date    NOT NULL,
    records      bigint  NOT NULL,
    runs         bigint  NOT NULL,
    successes    bigint  NOT NULL,
    failures     bigint  NOT NULL,
    skips        bigint  NOT NULL,
    seconds      double precision NOT NULL,
    lag_seconds  double precision NOT NULL,
    CONSTRAINT workspace_days_pkey PRIMARY KEY (workspace_id, day)
);
COMMENT ON TABLE workspace_days IS 'What a purged job did is still counted here.';
ALTER TABLE workspace_days ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT ON workspace_days TO foliot_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON workspace_days TO foliot_engine;
CREATE POLICY workspace_days_own_workspace ON workspace_days FOR SELECT TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
CREATE POLICY workspace_days_engine ON workspace_days TO foliot_engine USING (true) WITH CHECK (true);

INSERT INTO workspace_days (workspace_id, day, records, runs, successes, failures, skips, seconds, lag_seconds)
SELECT workspace_id, day, sum(records), sum(runs), sum(successes), sum(failures), sum(skips), sum(seconds), sum(lag_seconds)
  FROM daily
 GROUP BY workspace_id, day;
