-- What workers were called, and which host they worked for, for as long as runs that they did are read: a worker's own row goes with it,
-- and runs know its id alone.

CREATE TABLE worker_names (
    workspace_id  uuid,
    id            uuid        NOT NULL,
    name          text        NOT NULL,
    host          text,
    registered_at timestamptz NOT NULL,
    CONSTRAINT worker_names_pkey PRIMARY KEY (id)
);
COMMENT ON COLUMN worker_names.workspace_id IS 'Whose worker it was; NULL is one that serves every workspace.';
CREATE INDEX worker_names_of_a_workspace ON worker_names (workspace_id, registered_at);
INSERT INTO worker_names (workspace_id, id, name, host, registered_at)
SELECT workers.workspace_id, workers.id, workers.name, hosts.name, workers.started_at
  FROM workers LEFT JOIN hosts ON hosts.id = workers.host_id;

ALTER TABLE worker_names ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY worker_names_engine ON worker_names TO foliot_engine USING (true) WITH CHECK (true);
CREATE POLICY worker_names_own_workspace ON worker_names FOR SELECT TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid
           OR (workspace_id IS NULL AND NULLIF(current_setting('foliot.workspace', true), '') IS NOT NULL));
GRANT SELECT ON worker_names TO foliot_app;
GRANT SELECT, INSERT, DELETE ON worker_names TO foliot_engine;

-- What the workers of one workspace tell of their types is bounded: the oldest make room.
GRANT DELETE ON job_types TO foliot_engine;
