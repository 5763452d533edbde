-- What runs leave behind, and how far they are.

CREATE TABLE artifacts (
    workspace_id uuid        NOT NULL,
    id           uuid        NOT NULL,
    run_id       uuid        NOT NULL,
    name         text        NOT NULL,
    attempt      integer     NOT NULL,
    media_type   text        NOT NULL,
    size         bigint      NOT NULL,
    sha256       bytea       NOT NULL,
    created_at   timestamptz NOT NULL,
    CONSTRAINT artifacts_pkey PRIMARY KEY (id),
    CONSTRAINT artifacts_one_by_a_name UNIQUE (run_id, name)
);
COMMENT ON COLUMN artifacts.id IS 'New with each content: who reads an old one piece by piece never gets a mixture.';
CREATE INDEX artifacts_of_a_workspace ON artifacts (workspace_id) INCLUDE (size);

CREATE TABLE artifact_chunks (
    workspace_id uuid    NOT NULL,
    artifact_id  uuid    NOT NULL,
    part         integer NOT NULL,
    data         bytea   NOT NULL,
    CONSTRAINT artifact_chunks_pkey PRIMARY KEY (artifact_id, part)
);
-- Most of what is kept is packed already; to try again costs time and room.
ALTER TABLE artifact_chunks ALTER COLUMN data SET STORAGE EXTERNAL;

ALTER TABLE leases ADD COLUMN progress jsonb;
COMMENT ON COLUMN leases.progress IS 'How far the attempt is, in its own words; gone with it.';


DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['artifacts', 'artifact_chunks'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY %I ON %I TO foliot_engine USING (true) WITH CHECK (true)', name || '_engine', name);
        EXECUTE format('CREATE POLICY %I ON %I TO foliot_app '
                       'USING (workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid) '
                       'WITH CHECK (workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid)',
                       name || '_own_workspace', name);
    END LOOP;
END $$;
GRANT SELECT, DELETE ON artifacts, artifact_chunks TO foliot_app;
GRANT SELECT, INSERT, DELETE ON artifacts, artifact_chunks TO foliot_engine;
