-- The engine: what is defined (jobs, and the calendars, freezes and dependencies they lean on), what is due (timers), what is
-- to be done (ready, waiting, leases) and what has been (runs, attempts, daily).
--
-- Locks are taken in one order everywhere: timers by job_id, then leases, ready and waiting, then limits by key, then runs.
-- Hot tables (timers, ready, waiting, leases, workers, limits) have no foreign keys and only the indexes their queries need.
-- Nothing here reads a clock: every instant is the transaction's `now`, passed in.


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
    CONSTRAINT jobs_pkey PRIMARY KEY (id),
    CONSTRAINT jobs_of_one_workspace UNIQUE (workspace_id, id),
    CONSTRAINT jobs_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT jobs_name_fits CHECK (char_length(name) BETWEEN 1 AND 255),
    CONSTRAINT jobs_definition_is_object CHECK (jsonb_typeof(definition) = 'object'),
    CONSTRAINT jobs_status_is_known
        CHECK (status IN ('pending', 'active', 'paused', 'disabled', 'completed', 'failed', 'expired', 'archived'))
);
COMMENT ON COLUMN jobs.definition IS 'Everything a person wrote, in the canonical form of storage/jobs/definitions.py.';
COMMENT ON COLUMN jobs.schedule_rev IS 'Rises when schedule or zone are edited: part of the identity of a planned time.';
CREATE INDEX jobs_by_status ON jobs (workspace_id, status, id);
CREATE INDEX jobs_paused_until ON jobs (paused_until) WHERE paused_until IS NOT NULL;


-- One narrow row per job: where it stands in its timetable, which of its runs are live, and its counters. `spec` is the part of
-- the definition that planning reads, as canonical text with the defaults left out: equal rules are equal text, so one
-- parsed value serves every job that shares them, and the tick joins nothing.
CREATE TABLE timers (
    workspace_id        uuid        NOT NULL,
    job_id              uuid        NOT NULL,
    status              text        NOT NULL,
    spec                text        NOT NULL,
    schedule_rev        integer     NOT NULL,
    version             bigint      NOT NULL DEFAULT 0,
    cursor_at           timestamptz NOT NULL,
    due_at              timestamptz NOT NULL DEFAULT 'infinity',
    next_at             timestamptz,
    ending              text,
    runs_created        integer     NOT NULL DEFAULT 0,
    live                integer     NOT NULL DEFAULT 0,
    waiting             integer     NOT NULL DEFAULT 0,
    live_run_id         uuid,
    live_until          timestamptz,
    skip_next           text,
    errors              smallint    NOT NULL DEFAULT 0,
    has_gate            boolean     NOT NULL DEFAULT false,
    has_dependents      boolean     NOT NULL DEFAULT false,
    number              bigint      NOT NULL DEFAULT 0,
    fire_count          bigint      NOT NULL DEFAULT 0,
    run_count           bigint      NOT NULL DEFAULT 0,
    success_count       bigint      NOT NULL DEFAULT 0,
    failure_count       bigint      NOT NULL DEFAULT 0,
    skip_count          bigint      NOT NULL DEFAULT 0,
    failures_in_a_row   integer     NOT NULL DEFAULT 0,
    last_fire_at        timestamptz,
    last_run_at         timestamptz,
    last_run_id         uuid,
    last_run_status     text,
    last_error          text,
    last_success_at     timestamptz,
    last_success_run_id uuid,
    last_failure_at     timestamptz,
    last_failure_run_id uuid,
    last_end_at         timestamptz,
    last_end_run_id     uuid,
    CONSTRAINT timers_pkey PRIMARY KEY (job_id),
    CONSTRAINT timers_counts_are_not_negative CHECK (live >= 0 AND waiting >= 0)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
COMMENT ON COLUMN timers.due_at IS 'When the tick must look; infinity when nothing is planned.';
COMMENT ON COLUMN timers.last_end_run_id IS 'The run that ended last, however it ended; skipped ones do not count. Cancelled ones show only here.';
COMMENT ON COLUMN timers.cursor_at IS 'The planned time consumed last, or when planned times began to count.';
CREATE INDEX timers_due ON timers (due_at);


-- The ledger. One row for every planned time, inserted by the transaction that moves the timer on and written once more, when
-- the run ends. While `status` is NULL the run is open, and ready, waiting or leases say what it is doing.
CREATE TABLE runs (
    workspace_id    uuid        NOT NULL,
    id              uuid        NOT NULL,
    job_id          uuid        NOT NULL,
    number          bigint      NOT NULL,
    trigger         text        NOT NULL,
    status          text,
    skip_reason     text,
    note            text,
    planned_for     timestamptz NOT NULL,
    planned_key     timestamp   NOT NULL,
    fold            smallint    NOT NULL DEFAULT 0,
    schedule_rev    integer     NOT NULL,
    planned_until   timestamptz,
    count           integer,
    created_at      timestamptz NOT NULL,
    started_at      timestamptz,
    finished_at     timestamptz,
    attempt_count   integer     NOT NULL DEFAULT 0,
    fence           integer,
    worker_id       uuid,
    input           jsonb,
    output          jsonb,
    error           jsonb,
    triggered_by    text,
    upstream_run_id uuid,
    retry_of        uuid,
    CONSTRAINT runs_pkey PRIMARY KEY (id),
    CONSTRAINT runs_status_is_known
        CHECK (status IN ('succeeded', 'failed', 'timed_out', 'interrupted', 'cancelled', 'skipped')),
    CONSTRAINT runs_end_together CHECK ((status IS NULL) = (finished_at IS NULL)),
    CONSTRAINT runs_skipped_have_a_reason CHECK ((status IS NOT DISTINCT FROM 'skipped') = (skip_reason IS NOT NULL))
) WITH (fillfactor = 85);
COMMENT ON COLUMN runs.count IS 'How many planned times a gap record stands for; NULL with planned_until: more than 10,000.';
-- Time first, so that inserts stay at the right edge of the index.
CREATE UNIQUE INDEX runs_one_per_planned_time ON runs (planned_key, fold, schedule_rev, job_id) WHERE trigger = 'schedule';
CREATE UNIQUE INDEX runs_one_per_upstream_run ON runs (job_id, upstream_run_id) WHERE trigger = 'dependency';
CREATE INDEX runs_newest_of_a_job ON runs (job_id, planned_for DESC, id DESC);
CREATE INDEX runs_newest_of_a_workspace ON runs (workspace_id, id DESC);


-- Every attempt of a run that needed more than one; a run that ended with its first is its own record of it.
CREATE TABLE attempts (
    workspace_id uuid        NOT NULL,
    run_id       uuid        NOT NULL,
    number       integer     NOT NULL,
    status       text        NOT NULL,
    worker_id    uuid        NOT NULL,
    fence        integer     NOT NULL,
    leased_at    timestamptz NOT NULL,
    ended_at     timestamptz NOT NULL,
    error        jsonb,
    CONSTRAINT attempts_pkey PRIMARY KEY (run_id, number),
    CONSTRAINT attempts_status_is_known CHECK (status IN ('succeeded', 'failed', 'timed_out', 'lost', 'cancelled'))
);


-- A run to be done has one row in one of three tables, with the same columns at its heart: ready (a worker may take it),
-- leases (a worker has it) or waiting (it may not start yet). Moving between them is a delete and an insert.
CREATE TABLE ready (
    workspace_id    uuid        NOT NULL,
    run_id          uuid        NOT NULL,
    job_id          uuid        NOT NULL,
    queue           text        NOT NULL,
    type            text        NOT NULL,
    priority        smallint    NOT NULL,
    available_at    timestamptz NOT NULL,
    position        bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    planned_for     timestamptz NOT NULL,
    exclusive       boolean     NOT NULL,
    concurrency_key text,
    host_id         uuid,
    timeout         interval    NOT NULL,
    expires_at      timestamptz,
    trigger         text        NOT NULL,
    fence           integer     NOT NULL DEFAULT 0,
    attempts        integer     NOT NULL DEFAULT 0,
    retries         integer     NOT NULL DEFAULT 0,
    losses          integer     NOT NULL DEFAULT 0,
    started_at      timestamptz,
    last_error      jsonb,
    CONSTRAINT ready_pkey PRIMARY KEY (run_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX ready_to_claim ON ready (queue, workspace_id, priority, available_at, position);
CREATE INDEX ready_expiring ON ready (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE waiting (
    workspace_id    uuid        NOT NULL,
    run_id          uuid        NOT NULL,
    job_id          uuid        NOT NULL,
    waits_for       text        NOT NULL,
    position        bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    queue           text        NOT NULL,
    type            text        NOT NULL,
    priority        smallint    NOT NULL,
    available_at    timestamptz NOT NULL,
    planned_for     timestamptz NOT NULL,
    exclusive       boolean     NOT NULL,
    concurrency_key text,
    host_id         uuid,
    timeout         interval    NOT NULL,
    expires_at      timestamptz,
    trigger         text        NOT NULL,
    fence           integer     NOT NULL DEFAULT 0,
    attempts        integer     NOT NULL DEFAULT 0,
    retries         integer     NOT NULL DEFAULT 0,
    losses          integer     NOT NULL DEFAULT 0,
    started_at      timestamptz,
    last_error      jsonb,
    CONSTRAINT waiting_pkey PRIMARY KEY (run_id),
    CONSTRAINT waiting_for_something_known CHECK (waits_for IN ('turn', 'upstream', 'freeze', 'window', 'limit'))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX waiting_in_order_of_a_job ON waiting (job_id, position);
CREATE INDEX waiting_expiring ON waiting (expires_at) WHERE expires_at IS NOT NULL;
CREATE INDEX waiting_at_a_limit ON waiting (workspace_id, position) WHERE waits_for = 'limit';
CREATE INDEX waiting_at_a_key ON waiting (workspace_id, concurrency_key, position) WHERE waits_for = 'limit' AND concurrency_key IS NOT NULL;
CREATE INDEX waiting_for_a_time ON waiting (waits_for, available_at) WHERE waits_for IN ('freeze', 'window', 'upstream');

CREATE TABLE leases (
    workspace_id        uuid        NOT NULL,
    run_id              uuid        NOT NULL,
    job_id              uuid        NOT NULL,
    worker_id           uuid        NOT NULL,
    fence               integer     NOT NULL,
    leased_at           timestamptz NOT NULL,
    deadline_at         timestamptz NOT NULL,
    cancel_requested_at timestamptz,
    queue               text        NOT NULL,
    type                text        NOT NULL,
    priority            smallint    NOT NULL,
    available_at        timestamptz NOT NULL,
    planned_for         timestamptz NOT NULL,
    exclusive           boolean     NOT NULL,
    concurrency_key     text,
    host_id             uuid,
    timeout             interval    NOT NULL,
    expires_at          timestamptz,
    trigger             text        NOT NULL,
    attempts            integer     NOT NULL,
    retries             integer     NOT NULL,
    losses              integer     NOT NULL,
    started_at          timestamptz NOT NULL,
    last_error          jsonb,
    CONSTRAINT leases_pkey PRIMARY KEY (run_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- No overlap, whatever the bookkeeping says.
CREATE UNIQUE INDEX leases_one_per_exclusive_job ON leases (job_id) WHERE exclusive;


CREATE TABLE workers (
    workspace_id uuid,
    id           uuid        NOT NULL,
    name         text        NOT NULL,
    queues       text[]      NOT NULL,
    types        text[]      NOT NULL,
    capacity     integer     NOT NULL,
    started_at   timestamptz NOT NULL,
    alive_until  timestamptz NOT NULL,
    is_draining  boolean     NOT NULL DEFAULT false,
    version      text        NOT NULL DEFAULT '',
    CONSTRAINT workers_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50);
COMMENT ON COLUMN workers.workspace_id IS 'NULL for workers that serve every workspace.';
COMMENT ON COLUMN workers.id IS 'Fresh for each process: a host name would let a restarted worker pass for its dead self.';


-- Present only where a cap is set. `in_use` counts leases; claim and settle lock the rows in key order.
CREATE TABLE limits (
    workspace_id uuid    NOT NULL,
    key          text    NOT NULL,
    cap          integer NOT NULL,
    in_use       integer NOT NULL DEFAULT 0,
    CONSTRAINT limits_pkey PRIMARY KEY (workspace_id, key),
    CONSTRAINT limits_cap_is_positive CHECK (cap > 0),
    CONSTRAINT limits_in_use_is_not_negative CHECK (in_use >= 0)
) WITH (fillfactor = 50);
COMMENT ON COLUMN limits.key IS 'Empty for the workspace as a whole, else a concurrency key.';


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

CREATE TABLE freezes (
    workspace_id uuid        NOT NULL,
    id           uuid        NOT NULL,
    scope        jsonb       NOT NULL,
    start_at     timestamptz NOT NULL,
    end_at       timestamptz,
    after        text        NOT NULL,
    per_minute   integer     NOT NULL DEFAULT 60,
    running      text        NOT NULL DEFAULT 'drain',
    reason       text        NOT NULL,
    created_by   text        NOT NULL,
    created_at   timestamptz NOT NULL,
    lifted_by    text,
    lifted_at    timestamptz,
    held_until   timestamptz,
    thawed_to    uuid        NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000',
    thawed_at    timestamptz,
    paced_until  timestamptz,
    CONSTRAINT freezes_pkey PRIMARY KEY (id),
    CONSTRAINT freezes_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT freezes_end_after_they_start CHECK (end_at > start_at),
    CONSTRAINT freezes_after_is_known CHECK (after IN ('skip', 'latest', 'all')),
    CONSTRAINT freezes_running_is_known CHECK (running IN ('drain', 'stop'))
);
COMMENT ON COLUMN freezes.scope IS '{} for the whole workspace, else any of {"jobs": […], "tags": […], "queues": […]}.';
COMMENT ON COLUMN freezes.held_until IS 'Of a freeze lifted early: the end it had before, infinity for none. Its timers were set to that.';
COMMENT ON COLUMN freezes.thawed_to IS 'How far the walk over those timers has come; thawed_at is when it was complete.';
COMMENT ON COLUMN freezes.paced_until IS 'When the last run released at its rate may start.';
CREATE INDEX freezes_by_end ON freezes (workspace_id, end_at);
CREATE INDEX freezes_to_thaw ON freezes (end_at) WHERE held_until IS NOT NULL AND thawed_at IS NULL;

CREATE FUNCTION freeze_covers(scope jsonb, job_id uuid, queue text, tags text[]) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN scope = '{}'::jsonb OR COALESCE(scope -> 'jobs' ? job_id::text, false) OR COALESCE(scope -> 'queues' ? queue, false)
           OR COALESCE(scope -> 'tags' ?| tags, false);
REVOKE ALL ON FUNCTION freeze_covers FROM PUBLIC;
GRANT EXECUTE ON FUNCTION freeze_covers TO foliot_app, foliot_engine;

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


-- What is left of a job's days once its runs are pruned; written by the janitor when a day is complete.
CREATE TABLE daily (
    workspace_id uuid    NOT NULL,
    job_id       uuid    NOT NULL,
    day          date    NOT NULL,
    runs         integer NOT NULL,
    successes    integer NOT NULL,
    failures     integer NOT NULL,
    skips        bigint  NOT NULL,
    seconds      double precision NOT NULL,
    lag_seconds  double precision NOT NULL,
    CONSTRAINT daily_pkey PRIMARY KEY (job_id, day)
);


DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['jobs', 'timers', 'runs', 'attempts', 'ready', 'waiting', 'leases', 'limits', 'calendars',
                                'job_calendars', 'freezes', 'dependencies', 'daily'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO foliot_app, foliot_engine', name);
        EXECUTE format('CREATE POLICY %I ON %I TO foliot_app '
                       'USING (workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid) '
                       'WITH CHECK (workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid)',
                       name || '_own_workspace', name);
        EXECUTE format('CREATE POLICY %I ON %I TO foliot_engine USING (true) WITH CHECK (true)', name || '_engine', name);
    END LOOP;
END $$;

-- Workers belong to a workspace or to all; a workspace sees its own and the shared ones, and can change neither.
ALTER TABLE workers ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
GRANT SELECT ON workers TO foliot_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON workers TO foliot_engine;
CREATE POLICY workers_own_workspace ON workers FOR SELECT TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid
           OR (workspace_id IS NULL AND NULLIF(current_setting('foliot.workspace', true), '') IS NOT NULL));
CREATE POLICY workers_engine ON workers TO foliot_engine USING (true) WITH CHECK (true);
