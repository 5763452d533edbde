-- Logins of the database for programs that read reports with SQL, or create jobs with it. An administrator grants foliot_reader to the
-- login and enters it here; row-level security then shows it one workspace. session_user, not current_user: SET ROLE must not change it.
CREATE TABLE sql_logins (
    workspace_id uuid        NOT NULL,
    login        text        NOT NULL,
    creates_jobs boolean     NOT NULL DEFAULT false,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    CONSTRAINT sql_logins_pkey PRIMARY KEY (login),
    CONSTRAINT sql_logins_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id)
);
ALTER TABLE sql_logins ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON sql_logins TO foliot_app;
CREATE POLICY sql_logins_system ON sql_logins TO foliot_app
    USING (current_setting('foliot.system', true) = 'on') WITH CHECK (current_setting('foliot.system', true) = 'on');
GRANT SELECT ON sql_logins TO foliot_reader;
CREATE POLICY sql_logins_own ON sql_logins FOR SELECT TO foliot_reader USING (login = session_user);


-- Jobs that a program has inserted with SQL. The scheduler creates each as the API would, and records the job or the error here.
CREATE TABLE job_inbox (
    workspace_id uuid        NOT NULL,
    id           uuid        NOT NULL DEFAULT gen_random_uuid(),
    job          jsonb       NOT NULL,
    created_by   text        NOT NULL DEFAULT session_user,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    processed_at timestamptz,
    job_id       uuid,
    error        text,
    CONSTRAINT job_inbox_pkey PRIMARY KEY (id),
    CONSTRAINT job_inbox_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT job_inbox_job_is_object CHECK (jsonb_typeof(job) = 'object' AND octet_length(job::text) <= 1048576),
    CONSTRAINT job_inbox_has_one_result CHECK ((processed_at IS NOT NULL) = (num_nonnulls(job_id, error) = 1))
);
CREATE INDEX job_inbox_unprocessed ON job_inbox (created_at) WHERE processed_at IS NULL;
CREATE INDEX job_inbox_processed ON job_inbox (processed_at) WHERE processed_at IS NOT NULL;
ALTER TABLE job_inbox ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, UPDATE (processed_at, job_id, error), DELETE ON job_inbox TO foliot_app;
CREATE POLICY job_inbox_own_workspace ON job_inbox TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
GRANT SELECT (workspace_id, id, created_at, processed_at), DELETE ON job_inbox TO foliot_engine;
CREATE POLICY job_inbox_engine_read ON job_inbox FOR SELECT TO foliot_engine USING (true);
CREATE POLICY job_inbox_engine_delete ON job_inbox FOR DELETE TO foliot_engine USING (processed_at IS NOT NULL);
GRANT SELECT, INSERT (workspace_id, id, job, created_by) ON job_inbox TO foliot_reader;
CREATE POLICY job_inbox_reader ON job_inbox FOR SELECT TO foliot_reader USING (created_by = session_user);
CREATE POLICY job_inbox_reader_insert ON job_inbox FOR INSERT TO foliot_reader
    WITH CHECK (created_by = session_user AND EXISTS
                (SELECT FROM sql_logins WHERE login = session_user AND creates_jobs AND sql_logins.workspace_id = job_inbox.workspace_id));

CREATE FUNCTION create_job(job jsonb) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    made uuid := gen_random_uuid();
    mine uuid := (SELECT workspace_id FROM foliot.sql_logins WHERE login = session_user AND creates_jobs);
BEGIN
    IF mine IS NULL THEN
        RAISE EXCEPTION 'The login % may not create jobs.', session_user
            USING ERRCODE = 'insufficient_privilege', HINT = 'An administrator sets creates_jobs for it in foliot.sql_logins.';
    END IF;
    INSERT INTO foliot.job_inbox (workspace_id, id, job, created_by) VALUES (mine, made, create_job.job, session_user);
    RETURN made;
END $$;
REVOKE ALL ON FUNCTION create_job FROM PUBLIC;
GRANT EXECUTE ON FUNCTION create_job TO foliot_reader;


-- What foliot_reader sees: the jobs and the history of one workspace.
GRANT USAGE ON SCHEMA foliot TO foliot_reader;
DO $$
DECLARE
    each text;
BEGIN
    FOREACH each IN ARRAY ARRAY['jobs', 'job_tags', 'timers', 'runs', 'attempts', 'job_days', 'workspace_days'] LOOP
        EXECUTE format('GRANT SELECT ON %I TO foliot_reader', each);
        EXECUTE format('CREATE POLICY %I ON %I FOR SELECT TO foliot_reader USING (workspace_id ='
                       ' (SELECT sql_logins.workspace_id FROM foliot.sql_logins WHERE login = session_user))', each || '_reader', each);
    END LOOP;
END $$;
GRANT SELECT ON workspaces TO foliot_reader;
CREATE POLICY workspaces_reader ON workspaces FOR SELECT TO foliot_reader
    USING (id = (SELECT workspace_id FROM foliot.sql_logins WHERE login = session_user));
