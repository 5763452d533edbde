-- Incoming webhooks: addresses of jobs. A signed request to a `trigger` runs the job; a `check_in` takes word of work that is done elsewhere.
CREATE TABLE incoming_webhooks (
    workspace_id uuid        NOT NULL,
    id           uuid        NOT NULL,
    job_id       uuid        NOT NULL,
    name         text        NOT NULL,
    kind         text        NOT NULL,
    token        text        NOT NULL,
    secret       text,
    old_secret   text,
    enabled      boolean     NOT NULL DEFAULT true,
    revision     integer     NOT NULL DEFAULT 1,
    created_by   text        NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    called_at    timestamptz,
    refused_at   timestamptz,
    refusal      text,
    CONSTRAINT incoming_webhooks_pkey PRIMARY KEY (id),
    CONSTRAINT incoming_webhooks_of_one_workspace UNIQUE (workspace_id, id),
    CONSTRAINT incoming_webhooks_token_is_unique UNIQUE (token),
    CONSTRAINT incoming_webhooks_name_is_taken UNIQUE (workspace_id, name),
    CONSTRAINT incoming_webhooks_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT incoming_webhooks_job_of_same_workspace FOREIGN KEY (workspace_id, job_id) REFERENCES jobs (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT incoming_webhooks_kind_is_known CHECK (kind IN ('trigger', 'check_in')),
    CONSTRAINT incoming_webhooks_trigger_has_a_secret CHECK (kind <> 'trigger' OR secret IS NOT NULL),
    CONSTRAINT incoming_webhooks_name_fits CHECK (char_length(name) BETWEEN 1 AND 100)
) WITH (fillfactor = 70);
COMMENT ON COLUMN incoming_webhooks.token IS 'The random part of its address. For a check-in it is the only proof of the caller.';
COMMENT ON COLUMN incoming_webhooks.secret IS 'Name of the secret that verifies signatures; old_secret is valid as well while senders change over.';
CREATE INDEX incoming_webhooks_of_a_job ON incoming_webhooks (job_id);

-- The messages that triggers have accepted, so that a replay runs nothing and gets the answer of the first.
CREATE TABLE received_messages (
    workspace_id uuid        NOT NULL,
    webhook_id   uuid        NOT NULL,
    message_id   text        NOT NULL,
    run_id       uuid        NOT NULL,
    received_at  timestamptz NOT NULL,
    CONSTRAINT received_messages_pkey PRIMARY KEY (webhook_id, message_id),
    CONSTRAINT received_messages_webhook_of_same_workspace FOREIGN KEY (workspace_id, webhook_id)
        REFERENCES incoming_webhooks (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX received_messages_by_time ON received_messages (webhook_id, received_at);
CREATE INDEX received_messages_to_prune ON received_messages (received_at);

-- Runs that wait for a check-in: no worker claims them.
CREATE INDEX ready_for_check_in ON ready (available_at) WHERE type = 'check_in';

DO $$
DECLARE
    each record;
    mine text := 'workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid';
BEGIN
    FOR each IN SELECT * FROM (VALUES
        -- The engine finds the workspace of an address, and forgets old messages.
        ('incoming_webhooks', 'SELECT, INSERT, UPDATE, DELETE', 'SELECT (workspace_id, id, token)'),
        ('received_messages', 'SELECT, INSERT, UPDATE, DELETE', 'SELECT (webhook_id, message_id, received_at), DELETE')
    ) AS tables (name, app_may, engine_may) LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', each.name);
        EXECUTE format('GRANT %s ON %I TO foliot_app', each.app_may, each.name);
        EXECUTE format('GRANT %s ON %I TO foliot_engine', each.engine_may, each.name);
        EXECUTE format('CREATE POLICY %I ON %I TO foliot_app USING (%s) WITH CHECK (%3$s)', each.name || '_own_workspace', each.name, mine);
        EXECUTE format('CREATE POLICY %I ON %I TO foliot_engine USING (true) WITH CHECK (true)', each.name || '_engine', each.name);
    END LOOP;
END $$;
