-- What a job was (revisions), and which requests have been answered already (idempotency_keys).


-- Every definition that a job ever had, whole, written by the statement that puts it in force. Append only, by the absence of grants:
-- they go when their job is purged, by the foreign key.
CREATE TABLE revisions (
    workspace_id uuid        NOT NULL,
    job_id       uuid        NOT NULL,
    revision     integer     NOT NULL,
    schedule_rev integer     NOT NULL,
    at           timestamptz NOT NULL,
    actor        text        NOT NULL,
    note         text,
    definition   jsonb       NOT NULL,
    CONSTRAINT revisions_pkey PRIMARY KEY (job_id, revision),
    CONSTRAINT revisions_job_of_same_workspace FOREIGN KEY (workspace_id, job_id)
        REFERENCES jobs (workspace_id, id) ON DELETE CASCADE
);
COMMENT ON COLUMN revisions.at IS 'In force from here on, until the next one.';

-- Jobs that exist already begin with what they are now. Their table is forced upon its owner too, who does this.
ALTER TABLE jobs NO FORCE ROW LEVEL SECURITY;
INSERT INTO revisions (workspace_id, job_id, revision, schedule_rev, at, actor, note, definition)
SELECT workspace_id, id, revision, schedule_rev, updated_at, created_by,
       CASE WHEN revision > 1 THEN 'As it stood when revisions began to be kept.' END, definition
  FROM jobs;
ALTER TABLE jobs FORCE ROW LEVEL SECURITY;

ALTER TABLE revisions ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT ON revisions TO foliot_app;
CREATE POLICY revisions_own_workspace ON revisions TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);


-- A request with an Idempotency-Key, from when it came in. `done_at` is written by the transaction that does what was asked for;
-- the answer follows in one of its own, and may be lost without the thing being done twice.
CREATE TABLE idempotency_keys (
    workspace_id uuid        NOT NULL,
    principal_id uuid        NOT NULL,
    key          text        NOT NULL,
    fingerprint  bytea       NOT NULL,
    claim        uuid        NOT NULL,
    created_at   timestamptz NOT NULL,
    done_at      timestamptz,
    object_kind  text,
    object_id    text,
    status       smallint,
    headers      jsonb,
    body         bytea,
    CONSTRAINT idempotency_keys_pkey PRIMARY KEY (workspace_id, principal_id, key),
    CONSTRAINT idempotency_keys_of_a_claim UNIQUE (claim),
    CONSTRAINT idempotency_keys_key_fits CHECK (char_length(key) BETWEEN 1 AND 255)
);
COMMENT ON COLUMN idempotency_keys.claim IS 'Which request holds the key. One that took too long has lost it, and can no longer commit.';
COMMENT ON COLUMN idempotency_keys.object_id IS 'What was done to which thing, as the audit names it.';
CREATE INDEX idempotency_keys_oldest ON idempotency_keys (created_at);
ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO foliot_app;
GRANT SELECT (claim, created_at), DELETE ON idempotency_keys TO foliot_engine;
CREATE POLICY idempotency_keys_own_workspace ON idempotency_keys TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid)
    WITH CHECK (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid);
-- What is done to the installation itself is done in no workspace, and still under a key of one.
CREATE POLICY idempotency_keys_system ON idempotency_keys TO foliot_app
    USING (current_setting('foliot.system', true) = 'on') WITH CHECK (current_setting('foliot.system', true) = 'on');
CREATE POLICY idempotency_keys_engine ON idempotency_keys TO foliot_engine USING (true) WITH CHECK (true);
