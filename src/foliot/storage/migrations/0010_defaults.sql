-- Defaults of jobs, by installation and by workspace. A job stores the values that it got and the names of those it inherits; a change
-- of a default raises defaults_rev, and defaults_applied follows when all jobs have the new values.
ALTER TABLE installation ADD COLUMN defaults jsonb NOT NULL DEFAULT '{}';
COMMENT ON COLUMN installation.defaults IS 'From the settings of the node that started last: retry, timeout, retention, timezone.';
GRANT UPDATE (defaults) ON installation TO foliot_app;

ALTER TABLE workspaces
    ADD COLUMN defaults         jsonb   NOT NULL DEFAULT '{}',
    ADD COLUMN defaults_rev     integer NOT NULL DEFAULT 0,
    ADD COLUMN defaults_applied integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN workspaces.defaults IS 'Values that its jobs inherit; a missing one is the installation''s.';
GRANT UPDATE (defaults, defaults_rev, defaults_applied) ON workspaces TO foliot_app;

CREATE INDEX workspaces_with_new_defaults ON workspaces (id) WHERE defaults_rev <> defaults_applied;
CREATE INDEX jobs_inheriting ON jobs (workspace_id, id) WHERE definition ? 'inherited' AND status <> 'archived';
