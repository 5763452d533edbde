-- What it takes to find jobs among a hundred thousand of a workspace, and to let several planned times pass. Definitions are written
-- rarely, so their table bears its indexes; timers, which every fire writes, get none.

CREATE INDEX jobs_by_name ON jobs (workspace_id, name, id);
CREATE INDEX jobs_by_owner ON jobs (workspace_id, owner_id, id);
CREATE INDEX jobs_by_type ON jobs (workspace_id, type, id);
CREATE INDEX jobs_by_queue ON jobs (workspace_id, queue, id);


-- The tags of jobs, one row each. An index on the array itself would not serve: its operators may tell what they see, so PostgreSQL does
-- not let them near an index before row-level security has had its say. Kept by the trigger below, whoever writes the job.
CREATE TABLE job_tags (
    workspace_id uuid NOT NULL,
    job_id       uuid NOT NULL,
    tag          text NOT NULL,
    CONSTRAINT job_tags_pkey PRIMARY KEY (workspace_id, tag, job_id),
    CONSTRAINT job_tags_job_of_same_workspace FOREIGN KEY (workspace_id, job_id) REFERENCES jobs (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX job_tags_of_a_job ON job_tags (job_id);

ALTER TABLE jobs NO FORCE ROW LEVEL SECURITY;
INSERT INTO job_tags (workspace_id, job_id, tag) SELECT DISTINCT workspace_id, id, unnest(tags) FROM jobs;
ALTER TABLE jobs FORCE ROW LEVEL SECURITY;

CREATE FUNCTION keep_job_tags() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM foliot.job_tags WHERE job_id = NEW.id AND tag <> ALL (NEW.tags);
    END IF;
    INSERT INTO foliot.job_tags (workspace_id, job_id, tag) SELECT DISTINCT NEW.workspace_id, NEW.id, unnest(NEW.tags)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION keep_job_tags() FROM PUBLIC;
CREATE TRIGGER jobs_keep_tags_when_made AFTER INSERT ON jobs
    FOR EACH ROW WHEN (NEW.tags <> '{}') EXECUTE FUNCTION keep_job_tags();
CREATE TRIGGER jobs_keep_tags_when_edited AFTER UPDATE OF tags ON jobs
    FOR EACH ROW WHEN (NEW.tags IS DISTINCT FROM OLD.tags) EXECUTE FUNCTION keep_job_tags();

ALTER TABLE job_tags ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, DELETE ON job_tags TO foliot_app;
CREATE POLICY job_tags_own_workspace ON job_tags TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);


ALTER TABLE timers ADD COLUMN skip_until timestamptz;
COMMENT ON COLUMN timers.skip_until IS 'With skip_next: planned times up to here pass. Without it, the next one alone.';
