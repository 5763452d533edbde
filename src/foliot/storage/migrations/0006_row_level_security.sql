-- Grants and row-level security policies. foliot_app sees one workspace; foliot_engine sees every workspace, and only the tables
-- that scheduling needs. Security is forced, so that the tables' owner is bound too. `storage/catalogue.py` checks the rules.

-- Tables of one workspace: its rows for foliot_app, all rows for foliot_engine, each within its grants. A role without a grant
-- has no policy. A table with `is_shared` also shows the rows without a workspace to every workspace.
DO $$
DECLARE
    each record;
    mine text;
BEGIN
    FOR each IN SELECT * FROM (VALUES
        ('jobs',             'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('revisions',        'SELECT, INSERT',                 NULL,                                            false),
        ('job_tags',         'SELECT, INSERT, DELETE',         NULL,                                            false),
        ('dependencies',     'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('calendars',        'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('job_calendars',    'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('freezes',          'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('job_types',        'SELECT',                         'SELECT, INSERT, UPDATE, DELETE',                true),
        ('disabled_types',   'SELECT, INSERT, UPDATE, DELETE', NULL,                                            false),
        ('job_secrets',      'SELECT, INSERT, DELETE',         NULL,                                            false),
        ('timers',           'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('runs',             'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('attempts',         'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('ready',            'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('waiting',          'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('leases',           'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('limits',           'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('workers',          'SELECT',                         'SELECT, INSERT, UPDATE, DELETE',                true),
        ('lost_workers',     'SELECT',                         'SELECT, INSERT, DELETE',                        true),
        ('worker_names',     'SELECT',                         'SELECT, INSERT, DELETE',                        true),
        ('hosts',            'SELECT, INSERT, UPDATE, DELETE', 'SELECT, UPDATE',                                false),
        ('server_instances', 'SELECT, INSERT, UPDATE, DELETE', 'SELECT',                                        false),
        ('job_days',         'SELECT, INSERT, UPDATE, DELETE', 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('workspace_days',   'SELECT',                         'SELECT, INSERT, UPDATE, DELETE',                false),
        ('uncounted_runs',   'SELECT',                         'SELECT, INSERT, UPDATE, DELETE',                false),
        ('logs',             'SELECT, DELETE',                 'SELECT, INSERT, UPDATE, DELETE',                false),
        ('log_chunks',       'SELECT, DELETE',                 'SELECT, INSERT, DELETE',                        false),
        ('artifacts',        'SELECT, DELETE',                 'SELECT, INSERT, DELETE',                        false),
        ('artifact_chunks',  'SELECT, DELETE',                 'SELECT, INSERT, DELETE',                        false),
        ('watches',          'SELECT, INSERT, UPDATE',         'SELECT, UPDATE, DELETE',                        false),
        ('events',           'SELECT, INSERT',                 'SELECT, INSERT, DELETE',                        false),
        -- Text and address of a delivery are read in its own workspace, as foliot_app.
        ('outbox',           'SELECT, INSERT, UPDATE, DELETE', 'SELECT, UPDATE (due_at, leased_until, attempts, fence), DELETE', false),
        ('webhooks',         'SELECT, INSERT, UPDATE, DELETE', NULL,                                            false),
        ('rooms',            'SELECT, INSERT, UPDATE, DELETE', NULL,                                            false),
        ('messages',         'SELECT, INSERT',                 NULL,                                            false),
        ('secrets',          'SELECT, INSERT, DELETE, UPDATE (version, agents, key_id, sealed_value, updated_at)', NULL, false),
        ('idempotency_keys', 'SELECT, INSERT, UPDATE, DELETE', 'SELECT (holder_id, created_at), DELETE',        false),
        ('audit',            'SELECT, INSERT',                 NULL,                                            false),
        ('principals',       'SELECT, INSERT, UPDATE (name, email, role, active)', NULL,                        false),
        ('api_keys',         'SELECT, INSERT, UPDATE (name, scopes, expires_at, last_used_at, revoked_at)', NULL, false)
    ) AS tables (name, app_may, engine_may, is_shared) LOOP
        mine := 'workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid';
        IF each.is_shared THEN
            mine := mine || ' OR (workspace_id IS NULL AND NULLIF(current_setting(''foliot.workspace'', true), '''') IS NOT NULL)';
        END IF;
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', each.name);
        EXECUTE format('GRANT %s ON %I TO foliot_app', each.app_may, each.name);
        EXECUTE format(CASE each.app_may WHEN 'SELECT' THEN 'CREATE POLICY %I ON %I FOR SELECT TO foliot_app USING (%s)'
                                         ELSE 'CREATE POLICY %I ON %I TO foliot_app USING (%s) WITH CHECK (%3$s)' END,
                       each.name || '_own_workspace', each.name, mine);
        IF each.engine_may IS NOT NULL THEN
            EXECUTE format('GRANT %s ON %I TO foliot_engine', each.engine_may, each.name);
            EXECUTE format('CREATE POLICY %I ON %I TO foliot_engine USING (true) WITH CHECK (true)', each.name || '_engine', each.name);
        END IF;
    END LOOP;
END $$;


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


CREATE POLICY principals_system ON principals TO foliot_app
    USING (workspace_id IS NULL AND current_setting('foliot.system', true) = 'on')
    WITH CHECK (workspace_id IS NULL AND current_setting('foliot.system', true) = 'on');
CREATE POLICY principals_of_presented_key ON principals FOR SELECT TO foliot_app
    USING (EXISTS (SELECT FROM api_keys WHERE api_keys.principal_id = principals.id
                      AND api_keys.key_hash = decode(NULLIF(current_setting('foliot.key_hash', true), ''), 'hex')));


CREATE POLICY api_keys_system ON api_keys TO foliot_app
    USING (workspace_id IS NULL AND current_setting('foliot.system', true) = 'on')
    WITH CHECK (workspace_id IS NULL AND current_setting('foliot.system', true) = 'on');
-- Never for INSERT: a caller that names a hash could then create a key for any workspace.
CREATE POLICY api_keys_presented ON api_keys FOR SELECT TO foliot_app
    USING (key_hash = decode(NULLIF(current_setting('foliot.key_hash', true), ''), 'hex'));
CREATE POLICY api_keys_presented_use ON api_keys FOR UPDATE TO foliot_app
    USING (key_hash = decode(NULLIF(current_setting('foliot.key_hash', true), ''), 'hex'))
    WITH CHECK (key_hash = decode(NULLIF(current_setting('foliot.key_hash', true), ''), 'hex'));
-- A key of the installation creates keys in many workspaces. To find these, a transaction names the makers in foliot.makers.
CREATE POLICY api_keys_of_named_makers ON api_keys FOR SELECT TO foliot_app
    USING (current_setting('foliot.system', true) = 'on'
           AND made_by = ANY (NULLIF(current_setting('foliot.makers', true), '')::uuid[]));


-- Append only, by the absence of grants: only the owner can change or remove an entry.
GRANT INSERT ON audit TO foliot_engine;
CREATE POLICY audit_system ON audit TO foliot_app
    USING (workspace_id IS NULL AND current_setting('foliot.system', true) = 'on')
    WITH CHECK (workspace_id IS NULL AND current_setting('foliot.system', true) = 'on');
CREATE POLICY audit_engine_append ON audit FOR INSERT TO foliot_engine WITH CHECK (true);


GRANT SELECT ON disabled_types TO foliot_engine;
CREATE POLICY disabled_types_engine ON disabled_types FOR SELECT TO foliot_engine USING (true);


-- A change to the installation happens in no workspace, under a key of one.
CREATE POLICY idempotency_keys_system ON idempotency_keys TO foliot_app
    USING (current_setting('foliot.system', true) = 'on') WITH CHECK (current_setting('foliot.system', true) = 'on');


CREATE POLICY secrets_system_read ON secrets FOR SELECT TO foliot_app USING (current_setting('foliot.system', true) = 'on');
CREATE POLICY secrets_system_change ON secrets FOR UPDATE TO foliot_app
    USING (current_setting('foliot.system', true) = 'on')
    WITH CHECK (current_setting('foliot.system', true) = 'on');
CREATE POLICY secrets_system_remove ON secrets FOR DELETE TO foliot_app USING (current_setting('foliot.system', true) = 'on');


-- The janitor deletes old messages and rooms of runs, and reads no more of them than their age.
CREATE POLICY messages_engine_read ON messages FOR SELECT TO foliot_engine USING (true);
CREATE POLICY messages_engine_delete ON messages FOR DELETE TO foliot_engine USING (true);
GRANT SELECT (workspace_id, room_id, seq, sent_at), DELETE ON messages TO foliot_engine;
CREATE POLICY rooms_engine_read ON rooms FOR SELECT TO foliot_engine USING (true);
CREATE POLICY rooms_engine_delete ON rooms FOR DELETE TO foliot_engine USING (true);
GRANT SELECT (workspace_id, id, key, last_message_at), DELETE ON rooms TO foliot_engine;
