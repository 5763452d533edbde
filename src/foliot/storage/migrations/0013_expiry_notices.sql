-- Ends of jobs and keys that have their notice. Rows are deleted after the end.
CREATE TABLE expiry_notices (
    workspace_id uuid        NOT NULL,
    subject      text        NOT NULL,
    ends_at      timestamptz NOT NULL,
    CONSTRAINT expiry_notices_pkey PRIMARY KEY (subject, ends_at),
    CONSTRAINT expiry_notices_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id)
);
CREATE INDEX expiry_notices_by_end ON expiry_notices (ends_at);
CREATE INDEX jobs_with_an_end ON jobs ((definition #>> '{spec,end_at}')) WHERE status = 'active' AND definition #>> '{spec,end_at}' IS NOT NULL;
CREATE INDEX api_keys_with_an_end ON api_keys (expires_at) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;

ALTER TABLE expiry_notices ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, DELETE ON expiry_notices TO foliot_engine;
CREATE POLICY expiry_notices_engine ON expiry_notices TO foliot_engine USING (true) WITH CHECK (true);
-- The engine sees when keys end, and neither their hash nor whose they are.
GRANT SELECT (workspace_id, id, name, expires_at, created_at, revoked_at) ON api_keys TO foliot_engine;
CREATE POLICY api_keys_engine ON api_keys FOR SELECT TO foliot_engine USING (true);
