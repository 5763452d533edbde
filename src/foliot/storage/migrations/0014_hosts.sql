-- Hosts: machines of a workspace that fetch their work over HTTPS, and the server instances on them that jobs are bound to.

CREATE TABLE hosts (
    workspace_id  uuid        NOT NULL,
    id            uuid        NOT NULL,
    name          text        NOT NULL,
    labels        jsonb       NOT NULL DEFAULT '{}',
    max_mutations integer     NOT NULL DEFAULT 1,
    max_reads     integer     NOT NULL DEFAULT 8,
    principal_id  uuid        NOT NULL,
    version       text        NOT NULL DEFAULT '',
    revision      integer     NOT NULL DEFAULT 1,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    last_seen_at  timestamptz NOT NULL,
    alive_until   timestamptz NOT NULL,
    CONSTRAINT hosts_pkey PRIMARY KEY (id),
    CONSTRAINT hosts_of_one_workspace UNIQUE (workspace_id, id),
    CONSTRAINT hosts_name_is_taken UNIQUE (workspace_id, name),
    CONSTRAINT hosts_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT hosts_name_fits CHECK (char_length(name) BETWEEN 1 AND 100),
    CONSTRAINT hosts_labels_are_an_object CHECK (jsonb_typeof(labels) = 'object'),
    CONSTRAINT hosts_limits_are_sound CHECK (max_mutations BETWEEN 1 AND 1000 AND max_reads BETWEEN 0 AND 1000)
) WITH (fillfactor = 50);
COMMENT ON COLUMN hosts.principal_id IS 'Whose keys may speak for it: whoever registered it first.';
COMMENT ON COLUMN hosts.alive_until IS 'By when it must have been heard of again. A host that leaves in good order sets it to the moment it leaves.';

CREATE TABLE server_instances (
    workspace_id uuid        NOT NULL,
    id           uuid        NOT NULL,
    host_id      uuid        NOT NULL,
    name         text        NOT NULL,
    labels       jsonb       NOT NULL DEFAULT '{}',
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    CONSTRAINT server_instances_pkey PRIMARY KEY (id),
    CONSTRAINT server_instances_name_is_taken UNIQUE (workspace_id, name),
    CONSTRAINT server_instances_host_of_same_workspace FOREIGN KEY (workspace_id, host_id) REFERENCES hosts (workspace_id, id),
    CONSTRAINT server_instances_name_fits CHECK (char_length(name) BETWEEN 1 AND 100),
    CONSTRAINT server_instances_labels_are_an_object CHECK (jsonb_typeof(labels) = 'object')
);
CREATE INDEX server_instances_of_a_host ON server_instances (host_id);

ALTER TABLE hosts ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
ALTER TABLE server_instances ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON hosts, server_instances TO foliot_app;
GRANT SELECT, UPDATE ON hosts TO foliot_engine;
GRANT SELECT ON server_instances TO foliot_engine;
CREATE POLICY hosts_own_workspace ON hosts TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
CREATE POLICY server_instances_own_workspace ON server_instances TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
CREATE POLICY hosts_engine ON hosts TO foliot_engine USING (true) WITH CHECK (true);
CREATE POLICY server_instances_engine ON server_instances TO foliot_engine USING (true) WITH CHECK (true);


-- A worker that speaks HTTP belongs to whoever's key registered it; one that is a host's serves no queue but what is meant for the host.
ALTER TABLE workers ADD COLUMN principal_id uuid, ADD COLUMN host_id uuid;

-- Where a run must go is a name, host/… or server/…, which is looked up when a host claims: an instance that has moved meanwhile takes
-- the runs that wait for it along. Only a lease knows its host.
ALTER TABLE ready DROP COLUMN host_id, ADD COLUMN target text, ADD COLUMN read_only boolean NOT NULL DEFAULT false;
ALTER TABLE waiting DROP COLUMN host_id, ADD COLUMN target text, ADD COLUMN read_only boolean NOT NULL DEFAULT false;
ALTER TABLE leases ADD COLUMN read_only boolean NOT NULL DEFAULT false;
CREATE INDEX leases_of_a_host ON leases (host_id) WHERE host_id IS NOT NULL;

-- What is meant for a host that is away must not be walked past by every claim of the others.
DROP INDEX ready_to_claim;
CREATE INDEX ready_to_claim ON ready (queue, workspace_id, priority, available_at, position) WHERE target IS NULL;
CREATE INDEX ready_for_a_target ON ready (workspace_id, target, priority, available_at, position) WHERE target IS NOT NULL;
CREATE INDEX jobs_with_a_target ON jobs (workspace_id) WHERE definition -> 'spec' ? 'target';
