-- Types of jobs: what workers say of those they know, and which of them a workspace has switched off.

CREATE TABLE job_types (
    workspace_id  uuid,
    name          text        NOT NULL,
    description   text        NOT NULL,
    config_schema jsonb       NOT NULL,
    seen_at       timestamptz NOT NULL,
    CONSTRAINT job_types_one_by_a_name UNIQUE NULLS NOT DISTINCT (workspace_id, name)
);
COMMENT ON COLUMN job_types.workspace_id IS 'Whose worker told it; NULL is one that serves every workspace.';
ALTER TABLE job_types ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY job_types_engine ON job_types TO foliot_engine USING (true) WITH CHECK (true);
CREATE POLICY job_types_own_workspace ON job_types FOR SELECT TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid
           OR (workspace_id IS NULL AND NULLIF(current_setting('foliot.workspace', true), '') IS NOT NULL));
GRANT SELECT ON job_types TO foliot_app;
GRANT SELECT, INSERT, UPDATE ON job_types TO foliot_engine;

CREATE TABLE switched_off (
    workspace_id uuid        NOT NULL,
    type         text        NOT NULL,
    reason       text        NOT NULL,
    at           timestamptz NOT NULL,
    CONSTRAINT switched_off_pkey PRIMARY KEY (workspace_id, type)
);
COMMENT ON TABLE switched_off IS 'Types whose planned times are skipped in a workspace, by its administrator''s choice.';
ALTER TABLE switched_off ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY switched_off_engine ON switched_off FOR SELECT TO foliot_engine USING (true);
CREATE POLICY switched_off_own_workspace ON switched_off TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
GRANT SELECT ON switched_off TO foliot_engine;
GRANT SELECT, INSERT, UPDATE, DELETE ON switched_off TO foliot_app;
