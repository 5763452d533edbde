-- The installation itself: one row about it, the progress of the janitor's scans, and the list of migrations.
--
-- Three transaction-local settings decide which rows foliot_app sees: foliot.workspace (one workspace), foliot.system = 'on'
-- (rows that belong to no workspace) and foliot.key_hash (the API key of the request, before its workspace is known).
-- After its first use on a connection an unset setting reads as '' and not as NULL: hence NULLIF in every policy.

GRANT USAGE ON SCHEMA foliot TO foliot_app, foliot_engine;

-- Readable, so that a node can check whether the schema fits it. Not forced: the migration runner writes it as the owner.
ALTER TABLE migrations ENABLE ROW LEVEL SECURITY;
GRANT SELECT ON migrations TO foliot_app, foliot_engine;
CREATE POLICY migrations_read ON migrations FOR SELECT TO foliot_app, foliot_engine USING (true);


CREATE TABLE installation (
    singleton      boolean     NOT NULL DEFAULT true,
    id             uuid        NOT NULL,
    created_at     timestamptz NOT NULL,
    tzdata_version text,
    held_at        timestamptz,
    held_reason    text,
    missed_choice  text,
    canary_key_id  text,
    canary         bytea,
    CONSTRAINT installation_pkey PRIMARY KEY (singleton),
    CONSTRAINT installation_is_one_row CHECK (singleton),
    CONSTRAINT installation_hold_has_a_reason CHECK ((held_at IS NULL) = (held_reason IS NULL)),
    CONSTRAINT installation_missed_choice_is_known CHECK (missed_choice IN ('skip', 'catch_up'))
);
COMMENT ON COLUMN installation.held_at IS 'Set after a restore: nothing fires until an operator decides about the missed times.';
COMMENT ON COLUMN installation.canary IS 'A known text, sealed: a process that opens it has the master key of this installation.';

INSERT INTO installation (id, created_at) VALUES (gen_random_uuid(), clock_timestamp());

ALTER TABLE installation ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, UPDATE (tzdata_version, held_at, held_reason, missed_choice, canary_key_id, canary) ON installation TO foliot_app;
GRANT SELECT, UPDATE (tzdata_version) ON installation TO foliot_engine;
CREATE POLICY installation_read ON installation FOR SELECT TO foliot_app, foliot_engine USING (true);
CREATE POLICY installation_system_change ON installation FOR UPDATE TO foliot_app
    USING (current_setting('foliot.system', true) = 'on')
    WITH CHECK (current_setting('foliot.system', true) = 'on');
CREATE POLICY installation_engine_change ON installation FOR UPDATE TO foliot_engine USING (true) WITH CHECK (true);


-- How far each of the janitor's scans over all workspaces has come. The row's lock is the right to continue the scan:
-- a node that does not get it (SKIP LOCKED) leaves the scan to the other node.
CREATE TABLE scans (
    name     text NOT NULL,
    position uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    mark     text,
    CONSTRAINT scans_pkey PRIMARY KEY (name)
);
COMMENT ON COLUMN scans.position IS 'The last id that the scan has read; all zeros before the first.';
COMMENT ON COLUMN scans.mark IS 'A version that the last complete scan used, such as that of the zone data.';
INSERT INTO scans (name) VALUES ('roll_up'), ('prune'), ('timers'), ('runs'), ('zone_data');
ALTER TABLE scans ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT ON scans TO foliot_app;
GRANT SELECT, UPDATE (position, mark) ON scans TO foliot_engine;
CREATE POLICY scans_read ON scans FOR SELECT TO foliot_app, foliot_engine USING (true);
CREATE POLICY scans_engine ON scans FOR UPDATE TO foliot_engine USING (true) WITH CHECK (true);
