-- The floor everything stands on: the installation, its workspaces, who may enter, and the audit.
--
-- Three transaction-local settings decide what foliot_app sees: foliot.workspace (one workspace), foliot.system = 'on'
-- (what belongs to no workspace) and foliot.key_hash (the one key that was presented, before its workspace is known).
-- Once used on a connection, an unset setting reads as '' and not NULL: hence NULLIF everywhere.

GRANT USAGE ON SCHEMA foliot TO foliot_app, foliot_engine;

-- Readable, so that a node can tell whether it fits. Not forced: the owner's migration runner writes it.
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
    CONSTRAINT installation_pkey PRIMARY KEY (singleton),
    CONSTRAINT installation_is_one_row CHECK (singleton),
    CONSTRAINT installation_hold_has_a_reason CHECK ((held_at IS NULL) = (held_reason IS NULL)),
    CONSTRAINT installation_missed_choice_is_known CHECK (missed_choice IN ('skip', 'catch_up'))
);
COMMENT ON COLUMN installation.held_at IS 'Set after a restore: nothing fires until an operator says what becomes of the missed times.';

INSERT INTO installation (id, created_at) VALUES (gen_random_uuid(), clock_timestamp());

ALTER TABLE installation ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, UPDATE (tzdata_version, held_at, held_reason, missed_choice) ON installation TO foliot_app;
GRANT SELECT, UPDATE (tzdata_version) ON installation TO foliot_engine;
CREATE POLICY installation_read ON installation FOR SELECT TO foliot_app, foliot_engine USING (true);
CREATE POLICY installation_system_change ON installation FOR UPDATE TO foliot_app
    USING (current_setting('foliot.system', true) = 'on')
    WITH CHECK (current_setting('foliot.system', true) = 'on');
CREATE POLICY installation_engine_change ON installation FOR UPDATE TO foliot_engine USING (true) WITH CHECK (true);


CREATE TABLE workspaces (
    id               uuid        NOT NULL,
    slug             text        NOT NULL,
    name             text        NOT NULL,
    default_timezone text        NOT NULL DEFAULT 'UTC',
    settings         jsonb       NOT NULL DEFAULT '{}',
    created_at       timestamptz NOT NULL,
    archived_at      timestamptz,
    CONSTRAINT workspaces_pkey PRIMARY KEY (id),
    CONSTRAINT workspaces_slug_is_taken UNIQUE (slug),
    CONSTRAINT workspaces_slug_is_url_safe CHECK (slug ~ '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$'),
    CONSTRAINT workspaces_name_fits CHECK (char_length(name) BETWEEN 1 AND 200),
    CONSTRAINT workspaces_settings_is_object CHECK (jsonb_typeof(settings) = 'object')
);


-- workspace_key stands in for workspace_id in foreign keys. A foreign key with a NULL in it is not checked at all, so a
-- system key could otherwise point at some workspace's principal.
CREATE TABLE principals (
    workspace_id  uuid,
    workspace_key uuid        NOT NULL GENERATED ALWAYS AS (COALESCE(workspace_id, '00000000-0000-0000-0000-000000000000')) STORED,
    id            uuid        NOT NULL,
    kind          text        NOT NULL,
    name          text        NOT NULL,
    email         text,
    role          text        NOT NULL,
    active        boolean     NOT NULL DEFAULT true,
    created_at    timestamptz NOT NULL,
    CONSTRAINT principals_pkey PRIMARY KEY (id),
    CONSTRAINT principals_of_one_workspace UNIQUE (workspace_key, id),
    CONSTRAINT principals_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT principals_kind_is_known CHECK (kind IN ('user', 'agent', 'service', 'system')),
    CONSTRAINT principals_role_is_known CHECK (role IN ('viewer', 'operator', 'editor', 'admin')),
    CONSTRAINT principals_system_is_admin CHECK (workspace_id IS NOT NULL OR role = 'admin'),
    CONSTRAINT principals_name_fits CHECK (char_length(name) BETWEEN 1 AND 200),
    CONSTRAINT principals_email_fits CHECK (char_length(email) BETWEEN 3 AND 320)
);
COMMENT ON COLUMN principals.workspace_id IS 'NULL for administrators of the whole installation.';
CREATE UNIQUE INDEX principals_email_is_taken ON principals (workspace_key, lower(email)) WHERE email IS NOT NULL;
-- People share names; a machine that does would make the audit ambiguous.
CREATE UNIQUE INDEX principals_machine_name_is_taken ON principals (workspace_key, kind, name) WHERE kind <> 'user';


CREATE TABLE api_keys (
    workspace_id  uuid,
    workspace_key uuid        NOT NULL GENERATED ALWAYS AS (COALESCE(workspace_id, '00000000-0000-0000-0000-000000000000')) STORED,
    id            uuid        NOT NULL,
    principal_id  uuid        NOT NULL,
    name          text        NOT NULL,
    prefix        text        NOT NULL,
    key_hash      bytea       NOT NULL,
    scopes        text[]      NOT NULL DEFAULT '{}',
    expires_at    timestamptz,
    last_used_at  timestamptz,
    revoked_at    timestamptz,
    created_at    timestamptz NOT NULL,
    CONSTRAINT api_keys_pkey PRIMARY KEY (id),
    CONSTRAINT api_keys_found_by_hash UNIQUE (key_hash),
    CONSTRAINT api_keys_principal_of_same_workspace FOREIGN KEY (workspace_key, principal_id)
        REFERENCES principals (workspace_key, id) ON DELETE CASCADE,
    CONSTRAINT api_keys_hash_is_sha256 CHECK (octet_length(key_hash) = 32),
    CONSTRAINT api_keys_prefix_is_base62 CHECK (prefix ~ '^[0-9A-Za-z]{8}$'),
    CONSTRAINT api_keys_name_fits CHECK (char_length(name) BETWEEN 1 AND 200)
);
CREATE INDEX api_keys_of_a_principal ON api_keys (workspace_key, principal_id);


-- No foreign keys: an entry outlives what it speaks of.
CREATE TABLE audit (
    workspace_id uuid,
    id           uuid        NOT NULL,
    at           timestamptz NOT NULL,
    actor        text        NOT NULL,
    key_id       uuid,
    address      inet,
    action       text        NOT NULL,
    object_kind  text        NOT NULL,
    object_id    text        NOT NULL,
    before       jsonb,
    after        jsonb,
    request_id   text,
    CONSTRAINT audit_pkey PRIMARY KEY (id),
    CONSTRAINT audit_action_is_noun_dot_verb CHECK (action ~ '^[a-z_]+\.[a-z_]+$')
);
COMMENT ON COLUMN audit.actor IS 'The id of a principal, or a word for Foliot''s own doing.';
CREATE INDEX audit_newest_first ON audit (workspace_id, at DESC, id DESC);
CREATE INDEX audit_of_one_object ON audit (workspace_id, object_kind, object_id, at DESC);


ALTER TABLE workspaces ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE (slug, name, default_timezone, settings, archived_at) ON workspaces TO foliot_app;
GRANT SELECT ON workspaces TO foliot_engine;
CREATE POLICY workspaces_own ON workspaces FOR SELECT TO foliot_app
    USING (id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
CREATE POLICY workspaces_own_change ON workspaces FOR UPDATE TO foliot_app
    USING (id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
CREATE POLICY workspaces_system ON workspaces TO foliot_app
    USING (current_setting('foliot.system', true) = 'on')
    WITH CHECK (current_setting('foliot.system', true) = 'on');
CREATE POLICY workspaces_of_presented_key ON workspaces FOR SELECT TO foliot_app
    USING (EXISTS (SELECT FROM api_keys WHERE api_keys.workspace_id = workspaces.id
                      AND api_keys.key_hash = decode(NULLIF(current_setting('foliot.key_hash', true), ''), 'hex')));
CREATE POLICY workspaces_engine ON workspaces FOR SELECT TO foliot_engine USING (true);


ALTER TABLE principals ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE (name, email, role, active) ON principals TO foliot_app;
CREATE POLICY principals_own_workspace ON principals TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
CREATE POLICY principals_system ON principals TO foliot_app
    USING (workspace_id IS NULL AND current_setting('foliot.system', true) = 'on')
    WITH CHECK (workspace_id IS NULL AND current_setting('foliot.system', true) = 'on');
CREATE POLICY principals_of_presented_key ON principals FOR SELECT TO foliot_app
    USING (EXISTS (SELECT FROM api_keys WHERE api_keys.principal_id = principals.id
                      AND api_keys.key_hash = decode(NULLIF(current_setting('foliot.key_hash', true), ''), 'hex')));


ALTER TABLE api_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE (name, scopes, expires_at, last_used_at, revoked_at) ON api_keys TO foliot_app;
CREATE POLICY api_keys_own_workspace ON api_keys TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
CREATE POLICY api_keys_system ON api_keys TO foliot_app
    USING (workspace_id IS NULL AND current_setting('foliot.system', true) = 'on')
    WITH CHECK (workspace_id IS NULL AND current_setting('foliot.system', true) = 'on');
-- Never for INSERT: whoever can name a hash could then make a key for any workspace.
CREATE POLICY api_keys_presented ON api_keys FOR SELECT TO foliot_app
    USING (key_hash = decode(NULLIF(current_setting('foliot.key_hash', true), ''), 'hex'));
CREATE POLICY api_keys_presented_use ON api_keys FOR UPDATE TO foliot_app
    USING (key_hash = decode(NULLIF(current_setting('foliot.key_hash', true), ''), 'hex'))
    WITH CHECK (key_hash = decode(NULLIF(current_setting('foliot.key_hash', true), ''), 'hex'));


-- Append only, by the absence of grants: nobody but the owner can change or remove an entry.
ALTER TABLE audit ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT ON audit TO foliot_app;
GRANT INSERT ON audit TO foliot_engine;
CREATE POLICY audit_own_workspace ON audit TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
CREATE POLICY audit_system ON audit TO foliot_app
    USING (workspace_id IS NULL AND current_setting('foliot.system', true) = 'on')
    WITH CHECK (workspace_id IS NULL AND current_setting('foliot.system', true) = 'on');
CREATE POLICY audit_engine_append ON audit FOR INSERT TO foliot_engine WITH CHECK (true);
