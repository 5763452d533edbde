-- Notifications: facts to tell people about, incidents, channels, rules, and the contents of deliveries.

-- A job that has failed and has not succeeded since. Settlement sets and clears it; its successes leave the fast path.
ALTER TABLE timers ADD COLUMN has_incident boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN timers.has_incident IS 'The last run that counted failed, or a check found the job silent. The next success clears it and writes a notice.';
UPDATE timers SET has_incident = true WHERE failures_in_a_row > 0;

-- Facts written by the transaction that makes them true: a run failed for good, a job was paused. The notifier turns them into incidents
-- and deliveries and deletes them. The order of one job's facts is the order of its timer's locks.
CREATE TABLE notices (
    workspace_id uuid        NOT NULL,
    seq          bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    event        text        NOT NULL,
    at           timestamptz NOT NULL,
    job_id       uuid,
    run_id       uuid,
    facts        jsonb       NOT NULL DEFAULT '{}',
    CONSTRAINT notices_pkey PRIMARY KEY (workspace_id, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.02);
COMMENT ON COLUMN notices.job_id IS 'NULL for facts about the workspace, such as a queue without a worker.';

-- From the first failure to the next success. A subject has at most one open incident.
CREATE TABLE incidents (
    workspace_id    uuid        NOT NULL,
    id              uuid        NOT NULL,
    subject         text        NOT NULL,
    job_id          uuid,
    event           text        NOT NULL,
    fingerprint     text        NOT NULL,
    error           jsonb,
    failures        integer     NOT NULL DEFAULT 0,
    missed          bigint      NOT NULL DEFAULT 0,
    first_run_id    uuid,
    last_run_id     uuid,
    opened_at       timestamptz NOT NULL,
    last_at         timestamptz NOT NULL,
    closed_at       timestamptz,
    closed_by       text,
    messages        integer     NOT NULL DEFAULT 0,
    reminders       integer     NOT NULL DEFAULT 0,
    remind_at       timestamptz,
    acknowledged_at timestamptz,
    acknowledged_by text,
    muted_at        timestamptz,
    muted_by        text,
    snoozed_until   timestamptz,
    note            text,
    CONSTRAINT incidents_pkey PRIMARY KEY (id),
    CONSTRAINT incidents_of_one_workspace UNIQUE (workspace_id, id),
    CONSTRAINT incidents_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id)
) WITH (fillfactor = 70);
COMMENT ON COLUMN incidents.subject IS 'job:<id>, or queue:<name> for a queue that no worker serves.';
COMMENT ON COLUMN incidents.messages IS 'Messages planned so far: the position of the next one in its thread.';
CREATE UNIQUE INDEX incidents_one_open_per_subject ON incidents (workspace_id, subject) WHERE closed_at IS NULL;
CREATE INDEX incidents_newest ON incidents (workspace_id, id DESC);
CREATE INDEX incidents_of_a_job ON incidents (job_id, id DESC) WHERE job_id IS NOT NULL;
CREATE INDEX incidents_to_remind ON incidents (workspace_id, remind_at) WHERE closed_at IS NULL AND remind_at IS NOT NULL;
CREATE INDEX incidents_closed ON incidents (closed_at) WHERE closed_at IS NOT NULL;

-- Ways to reach people. Values of secrets are not here: `config` names them.
CREATE TABLE channels (
    workspace_id    uuid        NOT NULL,
    id              uuid        NOT NULL,
    name            text        NOT NULL,
    kind            text        NOT NULL,
    config          jsonb       NOT NULL,
    receiver        text        NOT NULL,
    enabled         boolean     NOT NULL DEFAULT true,
    disabled_at     timestamptz,
    disabled_reason text,
    failing_since   timestamptz,
    error           text,
    delivered_at    timestamptz,
    window_at       timestamptz,
    window_count    integer     NOT NULL DEFAULT 0,
    digest_at       timestamptz,
    revision        integer     NOT NULL DEFAULT 1,
    created_at      timestamptz NOT NULL,
    updated_at      timestamptz NOT NULL,
    CONSTRAINT channels_pkey PRIMARY KEY (id),
    CONSTRAINT channels_of_one_workspace UNIQUE (workspace_id, id),
    CONSTRAINT channels_name_is_taken UNIQUE (workspace_id, name),
    CONSTRAINT channels_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT channels_kind_is_known CHECK (kind IN ('email', 'slack', 'whatsapp', 'webhook', 'room', 'apprise')),
    CONSTRAINT channels_name_fits CHECK (char_length(name) BETWEEN 1 AND 100),
    CONSTRAINT channels_config_is_object CHECK (jsonb_typeof(config) = 'object')
) WITH (fillfactor = 70);
COMMENT ON COLUMN channels.disabled_at IS 'When the peer refused it for good: nothing is sent until it is enabled again.';
COMMENT ON COLUMN channels.window_at IS 'Start of the window in which window_count single messages were planned; further ones go into a digest.';
COMMENT ON COLUMN channels.digest_at IS 'When the waiting digest is sent; NULL without one.';
CREATE INDEX channels_with_a_digest ON channels (workspace_id, digest_at) WHERE digest_at IS NOT NULL;

-- Addresses that a peer refused for good. They are left out until the channel is enabled again.
CREATE TABLE refused_addresses (
    workspace_id uuid        NOT NULL,
    channel_id   uuid        NOT NULL,
    address      text        NOT NULL,
    reason       text        NOT NULL,
    at           timestamptz NOT NULL,
    CONSTRAINT refused_addresses_pkey PRIMARY KEY (channel_id, address),
    CONSTRAINT refused_addresses_channel_of_same_workspace FOREIGN KEY (workspace_id, channel_id)
        REFERENCES channels (workspace_id, id) ON DELETE CASCADE
);

CREATE TABLE notification_rules (
    workspace_id uuid        NOT NULL,
    id           uuid        NOT NULL,
    name         text        NOT NULL,
    definition   jsonb       NOT NULL,
    enabled      boolean     NOT NULL DEFAULT true,
    revision     integer     NOT NULL DEFAULT 1,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    CONSTRAINT notification_rules_pkey PRIMARY KEY (id),
    CONSTRAINT notification_rules_name_is_taken UNIQUE (workspace_id, name),
    CONSTRAINT notification_rules_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT notification_rules_name_fits CHECK (char_length(name) BETWEEN 1 AND 100)
);

-- The channels that know of an incident: reminders and the recovery go to these, in the same thread.
CREATE TABLE incident_threads (
    workspace_id uuid        NOT NULL,
    incident_id  uuid        NOT NULL,
    channel_id   uuid        NOT NULL,
    subject      text        NOT NULL,
    recipients   text[]      NOT NULL DEFAULT '{}',
    last_at      timestamptz NOT NULL,
    thread       text,
    CONSTRAINT incident_threads_pkey PRIMARY KEY (incident_id, channel_id),
    CONSTRAINT incident_threads_incident_of_same_workspace FOREIGN KEY (workspace_id, incident_id)
        REFERENCES incidents (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT incident_threads_channel_of_same_workspace FOREIGN KEY (workspace_id, channel_id)
        REFERENCES channels (workspace_id, id) ON DELETE CASCADE
);
COMMENT ON COLUMN incident_threads.thread IS 'The peer''s name of the thread, once it has answered.';
CREATE INDEX incident_threads_of_a_subject ON incident_threads (workspace_id, subject, channel_id, last_at);
CREATE INDEX incident_threads_of_a_channel ON incident_threads (channel_id);

-- Messages beyond the single ones that a channel gets in a window.
CREATE TABLE digest_entries (
    workspace_id uuid        NOT NULL,
    channel_id   uuid        NOT NULL,
    seq          bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    incident_id  uuid,
    kind         text        NOT NULL,
    job_name     text,
    fingerprint  text        NOT NULL,
    error        text,
    failures     integer     NOT NULL,
    at           timestamptz NOT NULL,
    CONSTRAINT digest_entries_pkey PRIMARY KEY (channel_id, seq),
    CONSTRAINT digest_entries_channel_of_same_workspace FOREIGN KEY (workspace_id, channel_id)
        REFERENCES channels (workspace_id, id) ON DELETE CASCADE
);

ALTER TABLE outbox ADD CONSTRAINT outbox_of_one_workspace UNIQUE (workspace_id, id);

-- The content of a delivery to a channel. The engine does not see it.
CREATE TABLE delivery_contents (
    workspace_id uuid   NOT NULL,
    delivery_id  uuid   NOT NULL,
    channel_id   uuid   NOT NULL,
    incident_id  uuid,
    job_id       uuid,
    event        text   NOT NULL,
    recipients   text[] NOT NULL DEFAULT '{}',
    content      jsonb  NOT NULL,
    answer       text,
    CONSTRAINT delivery_contents_pkey PRIMARY KEY (delivery_id),
    CONSTRAINT delivery_contents_of_a_delivery FOREIGN KEY (workspace_id, delivery_id)
        REFERENCES outbox (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT delivery_contents_channel_of_same_workspace FOREIGN KEY (workspace_id, channel_id)
        REFERENCES channels (workspace_id, id) ON DELETE CASCADE
);
COMMENT ON COLUMN delivery_contents.recipients IS 'Instead of the recipients of the channel.';
CREATE INDEX delivery_contents_newest ON delivery_contents (workspace_id, delivery_id DESC);
CREATE INDEX delivery_contents_of_a_channel ON delivery_contents (channel_id, delivery_id DESC);
CREATE INDEX delivery_contents_of_an_incident ON delivery_contents (incident_id, delivery_id DESC) WHERE incident_id IS NOT NULL;

ALTER TABLE outbox DROP CONSTRAINT outbox_kind_is_known;
ALTER TABLE outbox ADD CONSTRAINT outbox_kind_is_known CHECK (kind IN ('room.message', 'notice'));

DO $$
DECLARE
    each record;
    mine text := 'workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid';
BEGIN
    FOR each IN SELECT * FROM (VALUES
        -- The engine writes facts and finds the workspaces that have some; it reads none of them.
        ('notices',            'SELECT, INSERT, UPDATE, DELETE', 'INSERT, SELECT (workspace_id, seq)'),
        ('incidents',          'SELECT, INSERT, UPDATE, DELETE', 'SELECT (workspace_id, id, closed_at, remind_at), DELETE'),
        ('channels',           'SELECT, INSERT, UPDATE, DELETE', 'SELECT (workspace_id, digest_at)'),
        ('refused_addresses',  'SELECT, INSERT, UPDATE, DELETE', NULL),
        ('notification_rules', 'SELECT, INSERT, UPDATE, DELETE', NULL),
        ('incident_threads',   'SELECT, INSERT, UPDATE, DELETE', NULL),
        ('digest_entries',     'SELECT, INSERT, UPDATE, DELETE', NULL),
        ('delivery_contents',  'SELECT, INSERT, UPDATE, DELETE', NULL)
    ) AS tables (name, app_may, engine_may) LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', each.name);
        EXECUTE format('GRANT %s ON %I TO foliot_app', each.app_may, each.name);
        EXECUTE format('CREATE POLICY %I ON %I TO foliot_app USING (%s) WITH CHECK (%3$s)', each.name || '_own_workspace', each.name, mine);
        IF each.engine_may IS NOT NULL THEN
            EXECUTE format('GRANT %s ON %I TO foliot_engine', each.engine_may, each.name);
            EXECUTE format('CREATE POLICY %I ON %I TO foliot_engine USING (true) WITH CHECK (true)', each.name || '_engine', each.name);
        END IF;
    END LOOP;
END $$;
