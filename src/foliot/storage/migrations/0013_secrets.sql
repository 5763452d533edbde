-- Secrets: values that only the master keys open, and which jobs name them.
--
-- foliot_engine has nothing here. With foliot.system = 'on' the rows of all workspaces are seen, changed and removed, but none is made:
-- a new master key seals them all anew, and a workspace that is put away loses its own. What they show is sealed all the same.

CREATE TABLE secrets (
    workspace_id uuid        NOT NULL,
    id           uuid        NOT NULL,
    name         text        NOT NULL,
    version      integer     NOT NULL DEFAULT 1,
    agents       uuid[]      NOT NULL DEFAULT '{}',
    key_id       text        NOT NULL,
    box          bytea       NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    CONSTRAINT secrets_pkey PRIMARY KEY (id),
    CONSTRAINT secrets_name_is_taken UNIQUE (workspace_id, name),
    CONSTRAINT secrets_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT secrets_name_is_plain CHECK (name ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$'),
    CONSTRAINT secrets_box_is_whole CHECK (octet_length(box) >= 28)
);
COMMENT ON COLUMN secrets.box IS 'Nonce, ciphertext and tag, bound to workspace, id and version.';
COMMENT ON COLUMN secrets.agents IS 'The agents that may name it in their jobs; members may from editor on.';
CREATE INDEX secrets_by_master_key ON secrets (key_id, id);


-- By name: a job keeps the name when a secret is deleted under it, and finds the next one of that name.
CREATE TABLE job_secrets (
    workspace_id uuid NOT NULL,
    job_id       uuid NOT NULL,
    name         text NOT NULL,
    CONSTRAINT job_secrets_pkey PRIMARY KEY (workspace_id, name, job_id),
    CONSTRAINT job_secrets_job_of_same_workspace FOREIGN KEY (workspace_id, job_id) REFERENCES jobs (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX job_secrets_of_a_job ON job_secrets (workspace_id, job_id);


-- A text known to all, sealed: whoever opens it has the master key of this installation.
ALTER TABLE installation ADD COLUMN canary_key_id text, ADD COLUMN canary bytea;
GRANT UPDATE (canary_key_id, canary) ON installation TO foliot_app;


ALTER TABLE secrets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, DELETE, UPDATE (version, agents, key_id, box, updated_at) ON secrets TO foliot_app;
CREATE POLICY secrets_own_workspace ON secrets TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
CREATE POLICY secrets_system_read ON secrets FOR SELECT TO foliot_app USING (current_setting('foliot.system', true) = 'on');
CREATE POLICY secrets_system_change ON secrets FOR UPDATE TO foliot_app
    USING (current_setting('foliot.system', true) = 'on')
    WITH CHECK (current_setting('foliot.system', true) = 'on');
CREATE POLICY secrets_system_remove ON secrets FOR DELETE TO foliot_app USING (current_setting('foliot.system', true) = 'on');

ALTER TABLE job_secrets ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, DELETE ON job_secrets TO foliot_app;
CREATE POLICY job_secrets_own_workspace ON job_secrets TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
