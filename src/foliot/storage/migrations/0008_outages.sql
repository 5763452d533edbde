-- The times in which no scheduler ticked, so that explanations can tell of them.

CREATE TABLE scheduler_clock (
    singleton boolean     NOT NULL DEFAULT true,
    ticked_at timestamptz NOT NULL,
    CONSTRAINT scheduler_clock_pkey PRIMARY KEY (singleton),
    CONSTRAINT scheduler_clock_is_one_row CHECK (singleton)
);
COMMENT ON TABLE scheduler_clock IS 'When a scheduler of any node ticked last, to a few seconds. Empty before the first tick.';

CREATE TABLE outages (
    started_at timestamptz NOT NULL,
    ended_at   timestamptz NOT NULL,
    CONSTRAINT outages_pkey PRIMARY KEY (started_at),
    CONSTRAINT outages_end_after_their_start CHECK (ended_at > started_at)
);
CREATE INDEX outages_by_end ON outages (ended_at);

ALTER TABLE scheduler_clock ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE outages ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT ON scheduler_clock, outages TO foliot_app;
GRANT SELECT, INSERT, UPDATE ON scheduler_clock TO foliot_engine;
GRANT SELECT, INSERT, DELETE ON outages TO foliot_engine;
CREATE POLICY scheduler_clock_read ON scheduler_clock FOR SELECT TO foliot_app USING (true);
CREATE POLICY scheduler_clock_write ON scheduler_clock FOR ALL TO foliot_engine USING (true) WITH CHECK (true);
CREATE POLICY outages_read ON outages FOR SELECT TO foliot_app USING (true);
CREATE POLICY outages_write ON outages FOR ALL TO foliot_engine USING (true) WITH CHECK (true);
