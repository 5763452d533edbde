-- Ends are looked for in each workspace by itself: the engine's role sees no keys.
REVOKE SELECT (workspace_id, id, name, expires_at, created_at, revoked_at) ON api_keys FROM foliot_engine;
DROP POLICY api_keys_engine ON api_keys;
DROP INDEX api_keys_with_an_end;
CREATE INDEX api_keys_with_an_end ON api_keys (workspace_id, expires_at) WHERE expires_at IS NOT NULL AND revoked_at IS NULL;
DROP INDEX jobs_with_an_end;
CREATE INDEX jobs_with_an_end ON jobs (workspace_id, (definition #>> '{spec,end_at}')) WHERE status = 'active' AND definition #>> '{spec,end_at}' IS NOT NULL;

REVOKE ALL ON expiry_notices FROM foliot_engine;
DROP POLICY expiry_notices_engine ON expiry_notices;
GRANT SELECT, INSERT, DELETE ON expiry_notices TO foliot_app;
CREATE POLICY expiry_notices_own_workspace ON expiry_notices TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
DROP INDEX expiry_notices_by_end;
CREATE INDEX expiry_notices_by_end ON expiry_notices (workspace_id, ends_at);
ALTER TABLE expiry_notices DROP CONSTRAINT expiry_notices_pkey, ADD CONSTRAINT expiry_notices_pkey PRIMARY KEY (workspace_id, subject, ends_at);

-- A token has 192 random bits; a unique index over all workspaces would tell of those of others.
ALTER TABLE incoming_webhooks DROP CONSTRAINT incoming_webhooks_token_is_unique;
CREATE INDEX incoming_webhooks_by_token ON incoming_webhooks (token);
