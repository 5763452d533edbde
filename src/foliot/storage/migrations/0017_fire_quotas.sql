-- How many runs the schedules of a workspace may start in a day, and how many they have started today (UTC). A subject is the workspace
-- itself or a member that owns jobs. Only subjects with a quota have a row; the tick locks it, so two nodes cannot spend the same fire.
CREATE TABLE fire_quotas (
    workspace_id uuid    NOT NULL,
    subject_id   uuid    NOT NULL,
    per_day      integer NOT NULL,
    day          date    NOT NULL DEFAULT '-infinity',
    used         integer NOT NULL DEFAULT 0,
    CONSTRAINT fire_quotas_pkey PRIMARY KEY (workspace_id, subject_id),
    CONSTRAINT fire_quotas_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT fire_quotas_counts_are_not_negative CHECK (per_day >= 0 AND used >= 0)
) WITH (fillfactor = 50);
ALTER TABLE fire_quotas ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON fire_quotas TO foliot_app;
GRANT SELECT, UPDATE (day, used) ON fire_quotas TO foliot_engine;
CREATE POLICY fire_quotas_own_workspace ON fire_quotas TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
CREATE POLICY fire_quotas_system ON fire_quotas TO foliot_app
    USING (current_setting('foliot.system', true) = 'on') WITH CHECK (current_setting('foliot.system', true) = 'on');
CREATE POLICY fire_quotas_engine ON fire_quotas TO foliot_engine USING (true) WITH CHECK (true);
