-- Job definitions and the things they refer to: revisions, tags, dependencies, calendars, freezes, job types and secrets.
-- Definitions are written rarely, so these tables can afford their indexes.

CREATE TABLE jobs (
    workspace_id  uuid        NOT NULL,
    id            uuid        NOT NULL,
    name          text        NOT NULL,
    type          text        NOT NULL,
    queue         text        NOT NULL,
    tags          text[]      NOT NULL DEFAULT '{}',
    owner_id      uuid,
    definition    jsonb       NOT NULL,
    status        text        NOT NULL,
    status_reason text,
    status_by     text,
    status_at     timestamptz NOT NULL,
    paused_until  timestamptz,
    revision      integer     NOT NULL DEFAULT 1,
    schedule_rev  integer     NOT NULL DEFAULT 1,
    created_by    text        NOT NULL,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    purged_at     timestamptz,
    CONSTRAINT jobs_pkey PRIMARY KEY (id),
    CONSTRAINT jobs_of_one_workspace UNIQUE (workspace_id, id),
    CONSTRAINT jobs_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT jobs_name_fits CHECK (char_length(name) BETWEEN 1 AND 255),
    CONSTRAINT jobs_definition_is_object CHECK (jsonb_typeof(definition) = 'object'),
    CONSTRAINT jobs_status_is_known
        CHECK (status IN ('pending', 'active', 'paused', 'disabled', 'completed', 'failed', 'expired', 'archived'))
);
COMMENT ON COLUMN jobs.definition IS 'The definition that its author wrote, in the canonical form of storage/jobs/definitions.py.';
COMMENT ON COLUMN jobs.schedule_rev IS 'Rises when schedule or zone are edited: part of the identity of a planned time.';
COMMENT ON COLUMN jobs.purged_at IS 'Set while the janitor removes a long history in parts. No user sees such a job.';
CREATE INDEX jobs_by_status ON jobs (workspace_id, status, id);
CREATE INDEX jobs_by_name ON jobs (workspace_id, name, id);
CREATE INDEX jobs_by_owner ON jobs (workspace_id, owner_id, id);
CREATE INDEX jobs_by_type ON jobs (workspace_id, type, id);
CREATE INDEX jobs_by_queue ON jobs (workspace_id, queue, id);
CREATE INDEX jobs_with_a_target ON jobs (workspace_id) WHERE definition -> 'spec' ? 'target';
CREATE INDEX jobs_paused_until ON jobs (paused_until) WHERE paused_until IS NOT NULL;
CREATE INDEX jobs_to_purge ON jobs (purged_at) WHERE purged_at IS NOT NULL;


-- Every definition of a job, complete, written by the statement that puts it in force. Append only, by the absence of grants:
-- rows leave with their purged job, by the foreign key.
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
COMMENT ON COLUMN revisions.at IS 'In force from here until the next revision.';


-- One row per tag of a job. An index on the array would not help: its operators are not leakproof, so PostgreSQL does not use
-- them in an index condition before the row-level security policy. The triggers below write it for every writer of jobs.
CREATE TABLE job_tags (
    workspace_id uuid NOT NULL,
    job_id       uuid NOT NULL,
    tag          text NOT NULL,
    CONSTRAINT job_tags_pkey PRIMARY KEY (workspace_id, tag, job_id),
    CONSTRAINT job_tags_job_of_same_workspace FOREIGN KEY (workspace_id, job_id) REFERENCES jobs (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX job_tags_of_a_job ON job_tags (job_id);

CREATE FUNCTION sync_job_tags() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'UPDATE' THEN
        DELETE FROM foliot.job_tags WHERE job_id = NEW.id AND tag <> ALL (NEW.tags);
    END IF;
    INSERT INTO foliot.job_tags (workspace_id, job_id, tag) SELECT DISTINCT NEW.workspace_id, NEW.id, unnest(NEW.tags)
        ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;
REVOKE ALL ON FUNCTION sync_job_tags() FROM PUBLIC;
CREATE TRIGGER jobs_sync_tags_on_insert AFTER INSERT ON jobs
    FOR EACH ROW WHEN (NEW.tags <> '{}') EXECUTE FUNCTION sync_job_tags();
CREATE TRIGGER jobs_sync_tags_on_update AFTER UPDATE OF tags ON jobs
    FOR EACH ROW WHEN (NEW.tags IS DISTINCT FROM OLD.tags) EXECUTE FUNCTION sync_job_tags();


CREATE TABLE dependencies (
    workspace_id    uuid     NOT NULL,
    job_id          uuid     NOT NULL,
    upstream_id     uuid     NOT NULL,
    "on"            text     NOT NULL,
    mode            text     NOT NULL,
    delay           interval NOT NULL DEFAULT '0',
    max_age         interval,
    consumed_run_id uuid,
    CONSTRAINT dependencies_pkey PRIMARY KEY (job_id, upstream_id),
    CONSTRAINT dependencies_job_of_same_workspace FOREIGN KEY (workspace_id, job_id)
        REFERENCES jobs (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT dependencies_upstream_of_same_workspace FOREIGN KEY (workspace_id, upstream_id)
        REFERENCES jobs (workspace_id, id),
    CONSTRAINT dependencies_on_is_known CHECK ("on" IN ('success', 'failure', 'any')),
    CONSTRAINT dependencies_mode_is_known CHECK (mode IN ('trigger', 'gate')),
    CONSTRAINT dependencies_not_on_itself CHECK (job_id <> upstream_id)
);
CREATE INDEX dependencies_of_an_upstream ON dependencies (upstream_id);


CREATE TABLE calendars (
    workspace_id uuid        NOT NULL,
    id           uuid        NOT NULL,
    name         text        NOT NULL,
    definition   jsonb       NOT NULL,
    revision     integer     NOT NULL DEFAULT 1,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    CONSTRAINT calendars_pkey PRIMARY KEY (id),
    CONSTRAINT calendars_of_one_workspace UNIQUE (workspace_id, id),
    CONSTRAINT calendars_name_is_taken UNIQUE (workspace_id, name),
    CONSTRAINT calendars_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT calendars_name_fits CHECK (char_length(name) BETWEEN 1 AND 200)
);

CREATE TABLE job_calendars (
    workspace_id uuid NOT NULL,
    job_id       uuid NOT NULL,
    calendar_id  uuid NOT NULL,
    CONSTRAINT job_calendars_pkey PRIMARY KEY (job_id, calendar_id),
    CONSTRAINT job_calendars_job_of_same_workspace FOREIGN KEY (workspace_id, job_id)
        REFERENCES jobs (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT job_calendars_calendar_of_same_workspace FOREIGN KEY (workspace_id, calendar_id)
        REFERENCES calendars (workspace_id, id)
);
CREATE INDEX job_calendars_users_of_a_calendar ON job_calendars (calendar_id);


-- A freeze created ahead of its start takes effect at that instant: until every run that could start under it is waiting,
-- no run of its workspace is claimed (is_start_pending).
CREATE TABLE freezes (
    workspace_id     uuid        NOT NULL,
    id               uuid        NOT NULL,
    scope            jsonb       NOT NULL,
    start_at         timestamptz NOT NULL,
    end_at           timestamptz,
    after            text        NOT NULL,
    per_minute       integer     NOT NULL DEFAULT 60,
    running          text        NOT NULL DEFAULT 'drain',
    reason           text        NOT NULL,
    created_by       text        NOT NULL,
    created_at       timestamptz NOT NULL,
    lifted_by        text,
    lifted_at        timestamptz,
    original_end_at  timestamptz,
    thawed_to        uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    thawed_at        timestamptz,
    paced_until      timestamptz,
    is_start_pending boolean     NOT NULL DEFAULT false,
    CONSTRAINT freezes_pkey PRIMARY KEY (id),
    CONSTRAINT freezes_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT freezes_end_after_they_start CHECK (end_at > start_at),
    CONSTRAINT freezes_after_is_known CHECK (after IN ('skip', 'latest', 'all')),
    CONSTRAINT freezes_running_is_known CHECK (running IN ('drain', 'stop'))
);
COMMENT ON COLUMN freezes.scope IS '{} for the whole workspace, else any of {"jobs": […], "tags": […], "queues": […]}.';
COMMENT ON COLUMN freezes.original_end_at IS 'Of a freeze lifted early: its end before that, infinity for none. Its timers are due then.';
COMMENT ON COLUMN freezes.thawed_to IS 'The last of those timers that has been reset; thawed_at is set when all are.';
COMMENT ON COLUMN freezes.paced_until IS 'When the last run released at per_minute may start.';
COMMENT ON COLUMN freezes.is_start_pending IS 'Created ahead of its start, and runs that could start under it are not all waiting yet.';
CREATE INDEX freezes_by_end ON freezes (workspace_id, end_at);
CREATE INDEX freezes_to_thaw ON freezes (end_at) WHERE original_end_at IS NOT NULL AND thawed_at IS NULL;
CREATE INDEX freezes_to_begin ON freezes (workspace_id) WHERE is_start_pending;

CREATE FUNCTION freeze_covers(scope jsonb, job_id uuid, queue text, tags text[]) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN scope = '{}'::jsonb OR COALESCE(scope -> 'jobs' ? job_id::text, false) OR COALESCE(scope -> 'queues' ? queue, false)
           OR COALESCE(scope -> 'tags' ?| tags, false);
REVOKE ALL ON FUNCTION freeze_covers FROM PUBLIC;
GRANT EXECUTE ON FUNCTION freeze_covers TO foliot_app, foliot_engine;


-- Job types as workers describe them. The number per workspace is bounded: the engine deletes the oldest.
CREATE TABLE job_types (
    workspace_id  uuid,
    name          text        NOT NULL,
    description   text        NOT NULL,
    config_schema jsonb       NOT NULL,
    seen_at       timestamptz NOT NULL,
    CONSTRAINT job_types_name_is_unique UNIQUE NULLS NOT DISTINCT (workspace_id, name)
);
COMMENT ON COLUMN job_types.workspace_id IS 'The workspace of the worker; NULL for one that serves every workspace.';

CREATE TABLE disabled_types (
    workspace_id uuid        NOT NULL,
    type         text        NOT NULL,
    reason       text        NOT NULL,
    at           timestamptz NOT NULL,
    CONSTRAINT disabled_types_pkey PRIMARY KEY (workspace_id, type)
);
COMMENT ON TABLE disabled_types IS 'Types that an administrator disabled in a workspace: planned times are skipped, runs wait.';


-- Values that only the master keys open. foliot_engine has no grant. With foliot.system = 'on' a transaction reads, updates and
-- deletes the rows of all workspaces but inserts none: to reseal all with a new master key, and to empty a closed workspace.
CREATE TABLE secrets (
    workspace_id uuid        NOT NULL,
    id           uuid        NOT NULL,
    name         text        NOT NULL,
    version      integer     NOT NULL DEFAULT 1,
    agents       uuid[]      NOT NULL DEFAULT '{}',
    key_id       text        NOT NULL,
    sealed_value bytea       NOT NULL,
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    CONSTRAINT secrets_pkey PRIMARY KEY (id),
    CONSTRAINT secrets_name_is_taken UNIQUE (workspace_id, name),
    CONSTRAINT secrets_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT secrets_name_is_plain CHECK (name ~ '^[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}$'),
    CONSTRAINT secrets_sealed_value_is_complete CHECK (octet_length(sealed_value) >= 28)
);
COMMENT ON COLUMN secrets.sealed_value IS 'Nonce, ciphertext and tag, bound to workspace, id and version.';
COMMENT ON COLUMN secrets.agents IS 'The agents that may name it in their jobs; members may from the role editor on.';
CREATE INDEX secrets_by_master_key ON secrets (key_id, id);

-- By name: a job keeps the name of a deleted secret, and uses the next secret of that name.
CREATE TABLE job_secrets (
    workspace_id uuid NOT NULL,
    job_id       uuid NOT NULL,
    name         text NOT NULL,
    CONSTRAINT job_secrets_pkey PRIMARY KEY (workspace_id, name, job_id),
    CONSTRAINT job_secrets_job_of_same_workspace FOREIGN KEY (workspace_id, job_id) REFERENCES jobs (workspace_id, id) ON DELETE CASCADE
);
CREATE INDEX job_secrets_of_a_job ON job_secrets (workspace_id, job_id);
