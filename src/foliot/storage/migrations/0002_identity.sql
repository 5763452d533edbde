-- Workspaces, their members and API keys, the audit, and idempotency keys. 0006 has the grants and policies.

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


-- Foreign keys use workspace_key instead of workspace_id. PostgreSQL does not check a foreign key that contains a NULL, so a
-- system key (workspace_id NULL) could otherwise refer to a principal of any workspace.
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
-- Two people may share a name; two machines with one name would make the audit ambiguous.
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
    made_by       uuid,
    CONSTRAINT api_keys_pkey PRIMARY KEY (id),
    CONSTRAINT api_keys_found_by_hash UNIQUE (key_hash),
    CONSTRAINT api_keys_principal_of_same_workspace FOREIGN KEY (workspace_key, principal_id)
        REFERENCES principals (workspace_key, id) ON DELETE CASCADE,
    CONSTRAINT api_keys_hash_is_sha256 CHECK (octet_length(key_hash) = 32),
    CONSTRAINT api_keys_prefix_is_base62 CHECK (prefix ~ '^[0-9A-Za-z]{8}$'),
    CONSTRAINT api_keys_name_fits CHECK (char_length(name) BETWEEN 1 AND 200)
);
COMMENT ON COLUMN api_keys.made_by IS 'The key that created this one, possibly a key of the installation; NULL where no key was needed. '
    'Revoking a leaked key can then revoke every key created with it.';
CREATE INDEX api_keys_of_a_principal ON api_keys (workspace_key, principal_id);
CREATE INDEX api_keys_by_maker ON api_keys (made_by) WHERE made_by IS NOT NULL;


-- No foreign keys: an entry outlives its object.
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
COMMENT ON COLUMN audit.actor IS 'The id of a principal, or the name of a part of Foliot that acted on its own.';
CREATE INDEX audit_newest_first ON audit (workspace_id, at DESC, id DESC);
CREATE INDEX audit_of_one_object ON audit (workspace_id, object_kind, object_id, at DESC);


-- One row per request with an Idempotency-Key, from its arrival on. The transaction of the requested change writes `done_at`;
-- the response is stored by a transaction of its own. A crash between the two loses the response, never repeats the change.
CREATE TABLE idempotency_keys (
    workspace_id uuid        NOT NULL,
    principal_id uuid        NOT NULL,
    key          text        NOT NULL,
    fingerprint  bytea       NOT NULL,
    holder_id    uuid        NOT NULL,
    created_at   timestamptz NOT NULL,
    done_at      timestamptz,
    object_kind  text,
    object_id    text,
    status       smallint,
    headers      jsonb,
    body         bytea,
    progress     jsonb,
    progress_at  timestamptz,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (workspace_id, principal_id, key),
    CONSTRAINT idempotency_keys_holder_is_unique UNIQUE (holder_id),
    CONSTRAINT idempotency_keys_key_fits CHECK (char_length(key) BETWEEN 1 AND 255)
);
COMMENT ON COLUMN idempotency_keys.holder_id IS 'The request that holds the key. A request that takes too long loses it and can no longer commit.';
COMMENT ON COLUMN idempotency_keys.object_id IS 'The changed object, as the audit names it.';
COMMENT ON COLUMN idempotency_keys.progress IS 'Progress of a request that takes several transactions; each of them writes it.';
COMMENT ON COLUMN idempotency_keys.progress_at IS 'When the last part was done. The time after which a request counts as abandoned starts here.';
CREATE INDEX idempotency_keys_oldest ON idempotency_keys (created_at);
