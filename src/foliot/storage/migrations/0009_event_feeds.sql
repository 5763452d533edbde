-- Workspaces whose events go to webhook channels or to rules about every run, and how far they have been read.
CREATE TABLE event_feeds (
    workspace_id uuid        NOT NULL,
    xid          bigint,
    seq          bigint,
    renewed_at   timestamptz,
    CONSTRAINT event_feeds_pkey PRIMARY KEY (workspace_id),
    CONSTRAINT event_feeds_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id)
) WITH (fillfactor = 50);
COMMENT ON COLUMN event_feeds.renewed_at IS 'When the watch of the workspace was renewed; without it no events are stored.';
ALTER TABLE event_feeds ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON event_feeds TO foliot_app;
GRANT SELECT (workspace_id) ON event_feeds TO foliot_engine;
CREATE POLICY event_feeds_own_workspace ON event_feeds TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
CREATE POLICY event_feeds_engine ON event_feeds FOR SELECT TO foliot_engine USING (true);
