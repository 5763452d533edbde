-- Timers, runs and their attempts, the queue (ready, waiting, leases), workers and hosts, and the statistics of runs.
--
-- Every transaction takes locks in one order: timers by job_id, then leases, ready and waiting, then limits by key, then runs.
-- Hot tables (timers, ready, waiting, leases, workers, limits) have no foreign keys and only the indexes their queries need.
-- No statement reads a clock: every instant is the transaction's `now`, passed as a parameter.


-- One narrow row per job: its position in the schedule, its live runs and its counters. `spec` is the part of the definition
-- that planning reads, as canonical text without defaults. Equal rules are equal text, so one parsed value serves every
-- job that shares them, and the tick joins no table.
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
    skip_until          timestamptz,
    CONSTRAINT timers_pkey PRIMARY KEY (job_id),
    CONSTRAINT timers_counts_are_not_negative CHECK (live >= 0 AND waiting >= 0)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
COMMENT ON COLUMN timers.due_at IS 'When the tick must read the row; infinity when nothing is planned.';
COMMENT ON COLUMN timers.last_end_run_id IS 'The run that ended last, with any status but skipped. Cancelled runs appear only here.';
COMMENT ON COLUMN timers.cursor_at IS 'The planned time consumed last, or when planned times began to count.';
COMMENT ON COLUMN timers.skip_until IS 'With skip_next: planned times up to here are skipped. Without it, the next one alone.';
CREATE INDEX timers_due ON timers (due_at);
-- Job search ordered by next run reads timers_due for the many timers with due_at = next_at, and this index for the few
-- others. A fire that leaves both equal writes nothing to it.
CREATE INDEX timers_next_run_differs ON timers (workspace_id, COALESCE(next_at, 'infinity'), job_id) WHERE due_at IS DISTINCT FROM next_at;


-- The history. One row for every planned time, inserted by the transaction that advances the timer and updated once, when the
-- run ends. While `status` is NULL the run is open, and its row in ready, waiting or leases holds its state.
-- Half of each page stays free: a run often ends within a second of its neighbours, and the second version then fits on the
-- same page, so no index is written (HOT update).
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
) WITH (fillfactor = 50);
COMMENT ON COLUMN runs.count IS 'Number of planned times that a gap record covers; NULL with planned_until: more than 10,000.';
-- Time first, so that inserts stay at the right edge of the index.
CREATE UNIQUE INDEX runs_one_per_planned_time ON runs (planned_key, fold, schedule_rev, job_id) WHERE trigger = 'schedule';
CREATE UNIQUE INDEX runs_one_per_upstream_run ON runs (job_id, upstream_run_id) WHERE trigger = 'dependency';
CREATE INDEX runs_newest_of_a_job ON runs (job_id, planned_for DESC, id DESC);
CREATE INDEX runs_newest_of_a_workspace ON runs (workspace_id, id DESC);
-- Holds gap records only: firing and settling a run write nothing to it.
CREATE INDEX runs_gaps_of_a_job ON runs (job_id, planned_until) WHERE planned_until IS NOT NULL;
-- A search by planned time reads ids, which begin with the instant the record was made. No record is made before its planned
-- time, so a lower bound of planned times is a lower bound of ids. It is an upper bound too, except for records made long after
-- their planned time (backfill, retry, catch-up): this index holds those alone, and neither column changes when a run ends.
CREATE INDEX runs_recorded_late ON runs (workspace_id, id DESC, planned_for) WHERE created_at - planned_for > interval '5 minutes';
-- A job belongs to one workspace. Without this the planner counts the policy's condition as a second, selective filter and reads
-- the index of a whole workspace.
CREATE STATISTICS runs_job_implies_workspace (dependencies) ON job_id, workspace_id FROM runs;


-- Every attempt of a run that needed more than one. For a run that ended with its first attempt the run row is the record.
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
    external_id  text,
    CONSTRAINT attempts_pkey PRIMARY KEY (run_id, number),
    CONSTRAINT attempts_status_is_known CHECK (status IN ('succeeded', 'failed', 'timed_out', 'lost', 'cancelled'))
);
COMMENT ON COLUMN attempts.external_id IS 'The id of the attempt in another engine that runs it; on the lease while it is under way.';


-- An unfinished run has one row in one of three tables: ready (a worker may claim it), leases (a worker has it) or waiting (it may
-- not start yet). The three share most columns; a move is a delete and an insert.
-- `target` is a name, host/… or server/…, resolved when a host claims: runs follow an instance that moves to another host.
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
    timeout         interval    NOT NULL,
    expires_at      timestamptz,
    trigger         text        NOT NULL,
    fence           integer     NOT NULL DEFAULT 0,
    attempts        integer     NOT NULL DEFAULT 0,
    retries         integer     NOT NULL DEFAULT 0,
    losses          integer     NOT NULL DEFAULT 0,
    started_at      timestamptz,
    last_error      jsonb,
    target          text,
    read_only       boolean     NOT NULL DEFAULT false,
    CONSTRAINT ready_pkey PRIMARY KEY (run_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
-- Runs with a target have an index of their own: other claims must not walk past the runs of an absent host.
CREATE INDEX ready_to_claim ON ready (queue, workspace_id, priority, available_at, position) WHERE target IS NULL;
CREATE INDEX ready_for_a_target ON ready (workspace_id, target, priority, available_at, position) WHERE target IS NOT NULL;
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
    timeout         interval    NOT NULL,
    expires_at      timestamptz,
    trigger         text        NOT NULL,
    fence           integer     NOT NULL DEFAULT 0,
    attempts        integer     NOT NULL DEFAULT 0,
    retries         integer     NOT NULL DEFAULT 0,
    losses          integer     NOT NULL DEFAULT 0,
    started_at      timestamptz,
    last_error      jsonb,
    target          text,
    read_only       boolean     NOT NULL DEFAULT false,
    CONSTRAINT waiting_pkey PRIMARY KEY (run_id),
    CONSTRAINT waiting_waits_for_is_known CHECK (waits_for IN ('turn', 'upstream', 'freeze', 'window', 'limit', 'type'))
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX waiting_in_order_of_a_job ON waiting (job_id, position);
CREATE INDEX waiting_expiring ON waiting (expires_at) WHERE expires_at IS NOT NULL;
-- By priority before position: the more urgent run passes the limit first.
CREATE INDEX waiting_at_a_limit ON waiting (workspace_id, priority, position) WHERE waits_for = 'limit';
CREATE INDEX waiting_at_a_key ON waiting (workspace_id, concurrency_key, priority, position) WHERE waits_for = 'limit' AND concurrency_key IS NOT NULL;
CREATE INDEX waiting_for_a_time ON waiting (waits_for, available_at) WHERE waits_for IN ('freeze', 'window', 'upstream');
CREATE INDEX waiting_for_a_type ON waiting (workspace_id, type, position) WHERE waits_for = 'type';

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
    read_only           boolean     NOT NULL DEFAULT false,
    progress            jsonb,
    external_id         text,
    CONSTRAINT leases_pkey PRIMARY KEY (run_id)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
COMMENT ON COLUMN leases.progress IS 'How far the attempt is, in the handler''s own words; deleted with the lease.';
-- No two leases of an exclusive job, whatever the counters of its timer say.
CREATE UNIQUE INDEX leases_one_per_exclusive_job ON leases (job_id) WHERE exclusive;
CREATE INDEX leases_of_a_host ON leases (host_id) WHERE host_id IS NOT NULL;

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


-- A worker over HTTP belongs to the principal whose key registered it. A worker with a host_id claims only the host's runs.
CREATE TABLE workers (
    workspace_id  uuid,
    id            uuid        NOT NULL,
    name          text        NOT NULL,
    queues        text[]      NOT NULL,
    types         text[]      NOT NULL,
    capacity      integer     NOT NULL,
    started_at    timestamptz NOT NULL,
    alive_until   timestamptz NOT NULL,
    is_draining   boolean     NOT NULL DEFAULT false,
    version       text        NOT NULL DEFAULT '',
    heartbeat_at  timestamptz,
    principal_id  uuid,
    host_id       uuid,
    running_count integer     NOT NULL DEFAULT 0,
    CONSTRAINT workers_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50);
COMMENT ON COLUMN workers.workspace_id IS 'NULL for workers that serve every workspace.';
COMMENT ON COLUMN workers.id IS 'New for each process: with a host name a restarted worker could use the leases of its dead predecessor.';
COMMENT ON COLUMN workers.running_count IS 'Runs of all workspaces at the last heartbeat. A workspace cannot count those of others.';

-- Workers removed after their heartbeats stopped, for people to see. The engine does not read them.
CREATE TABLE lost_workers (
    workspace_id uuid,
    id           uuid        NOT NULL,
    name         text        NOT NULL,
    queues       text[]      NOT NULL,
    types        text[]      NOT NULL,
    capacity     integer     NOT NULL,
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    version      text        NOT NULL,
    CONSTRAINT lost_workers_pkey PRIMARY KEY (id)
);

-- Names and hosts of workers, kept as long as the runs they did: a run stores the worker's id alone.
CREATE TABLE worker_names (
    workspace_id  uuid,
    id            uuid        NOT NULL,
    name          text        NOT NULL,
    host          text,
    registered_at timestamptz NOT NULL,
    CONSTRAINT worker_names_pkey PRIMARY KEY (id)
);
COMMENT ON COLUMN worker_names.workspace_id IS 'The workspace of the worker; NULL for one that serves every workspace.';
CREATE INDEX worker_names_of_a_workspace ON worker_names (workspace_id, registered_at);

-- Machines of a workspace that fetch their work over HTTPS, and the server instances on them that jobs are bound to.
CREATE TABLE hosts (
    workspace_id  uuid        NOT NULL,
    id            uuid        NOT NULL,
    name          text        NOT NULL,
    labels        jsonb       NOT NULL DEFAULT '{}',
    max_mutations integer     NOT NULL DEFAULT 1,
    max_reads     integer     NOT NULL DEFAULT 8,
    principal_id  uuid        NOT NULL,
    version       text        NOT NULL DEFAULT '',
    revision      integer     NOT NULL DEFAULT 1,
    created_at    timestamptz NOT NULL,
    updated_at    timestamptz NOT NULL,
    last_seen_at  timestamptz NOT NULL,
    alive_until   timestamptz NOT NULL,
    CONSTRAINT hosts_pkey PRIMARY KEY (id),
    CONSTRAINT hosts_of_one_workspace UNIQUE (workspace_id, id),
    CONSTRAINT hosts_name_is_taken UNIQUE (workspace_id, name),
    CONSTRAINT hosts_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT hosts_name_fits CHECK (char_length(name) BETWEEN 1 AND 100),
    CONSTRAINT hosts_labels_are_an_object CHECK (jsonb_typeof(labels) = 'object'),
    CONSTRAINT hosts_limits_are_sound CHECK (max_mutations BETWEEN 1 AND 1000 AND max_reads BETWEEN 0 AND 1000)
) WITH (fillfactor = 50);
COMMENT ON COLUMN hosts.principal_id IS 'The principal that registered the host first; only its keys may act for the host.';
COMMENT ON COLUMN hosts.alive_until IS 'When the next heartbeat must have come. A host that signs off sets it to that moment.';

CREATE TABLE server_instances (
    workspace_id uuid        NOT NULL,
    id           uuid        NOT NULL,
    host_id      uuid        NOT NULL,
    name         text        NOT NULL,
    labels       jsonb       NOT NULL DEFAULT '{}',
    created_at   timestamptz NOT NULL,
    updated_at   timestamptz NOT NULL,
    CONSTRAINT server_instances_pkey PRIMARY KEY (id),
    CONSTRAINT server_instances_name_is_taken UNIQUE (workspace_id, name),
    CONSTRAINT server_instances_host_of_same_workspace FOREIGN KEY (workspace_id, host_id) REFERENCES hosts (workspace_id, id),
    CONSTRAINT server_instances_name_fits CHECK (char_length(name) BETWEEN 1 AND 100),
    CONSTRAINT server_instances_labels_are_an_object CHECK (jsonb_typeof(labels) = 'object')
);
CREATE INDEX server_instances_of_a_host ON server_instances (host_id);


-- Totals of a job per day, which remain after its runs are pruned. The janitor writes them when a day is complete.
CREATE TABLE job_days (
    workspace_id uuid    NOT NULL,
    job_id       uuid    NOT NULL,
    day          date    NOT NULL,
    runs         integer NOT NULL,
    successes    integer NOT NULL,
    failures     integer NOT NULL,
    skips        bigint  NOT NULL,
    seconds      double precision NOT NULL,
    lag_seconds  double precision NOT NULL,
    records      bigint  NOT NULL DEFAULT 0,
    CONSTRAINT job_days_pkey PRIMARY KEY (job_id, day)
);
COMMENT ON COLUMN job_days.records IS 'Rows of runs, pruned ones included.';
COMMENT ON COLUMN job_days.day IS 'The UTC day on which the record was made.';
CREATE INDEX job_days_of_a_workspace ON job_days (workspace_id, day);

-- Totals of a workspace per day: a workspace of a hundred thousand jobs has as many rows a day in job_days, and its statistics
-- are read often.
CREATE TABLE workspace_days (
    workspace_id uuid    NOT NULL,
    day          date    NOT NULL,
    records      bigint  NOT NULL,
    runs         bigint  NOT NULL,
    successes    bigint  NOT NULL,
    failures     bigint  NOT NULL,
    skips        bigint  NOT NULL,
    seconds      double precision NOT NULL,
    lag_seconds  double precision NOT NULL,
    CONSTRAINT workspace_days_pkey PRIMARY KEY (workspace_id, day)
);
COMMENT ON TABLE workspace_days IS 'Includes the runs of purged jobs.';

-- Runs that were open when the roll-up read their day. Each is counted once, when it has ended; until then it is not pruned.
CREATE TABLE uncounted_runs (
    workspace_id uuid NOT NULL,
    run_id       uuid NOT NULL,
    job_id       uuid NOT NULL,
    CONSTRAINT uncounted_runs_pkey PRIMARY KEY (run_id)
);
CREATE INDEX uncounted_runs_of_a_job ON uncounted_runs (job_id);


-- A run as people read it. The row of an open run in ready, waiting or leases determines its status.
CREATE VIEW run_records WITH (security_invoker = true) AS
SELECT runs.workspace_id, runs.id, runs.job_id, runs.number,
       COALESCE(runs.status, CASE WHEN leases.run_id IS NOT NULL THEN 'running' WHEN waiting.run_id IS NOT NULL THEN 'waiting'
                                  ELSE 'ready' END) AS status,
       runs.skip_reason, runs.note, runs.trigger, runs.planned_for, runs.planned_key, runs.schedule_rev, runs.planned_until, runs.count,
       runs.created_at, COALESCE(runs.started_at, leases.started_at, ready.started_at, waiting.started_at) AS started_at,
       runs.finished_at, COALESCE(leases.attempts, ready.attempts, waiting.attempts, runs.attempt_count) AS attempt_count,
       COALESCE(leases.worker_id, runs.worker_id) AS worker_id, runs.input, runs.output,
       COALESCE(runs.error, leases.last_error, ready.last_error, waiting.last_error) AS error,
       COALESCE(jobs.definition -> 'spec' -> 'schedule' ->> 'timezone', 'UTC') AS timezone,
       jobs.name AS job_name, runs.triggered_by, runs.retry_of, runs.upstream_run_id, leases.cancel_requested_at
  FROM runs
  LEFT JOIN jobs ON jobs.id = runs.job_id
  LEFT JOIN leases ON leases.run_id = runs.id
  LEFT JOIN ready ON ready.run_id = runs.id
  LEFT JOIN waiting ON waiting.run_id = runs.id;
GRANT SELECT ON run_records TO foliot_app, foliot_engine;


-- The amounts that each ended record adds to its day. A gap record is one record and `count` skips (10,000 when uncounted).
-- The lag of a backfill starts at its request: its planned time had passed long before.
CREATE VIEW run_counts WITH (security_invoker = true) AS
SELECT workspace_id, id, job_id, planned_for, (created_at AT TIME ZONE 'UTC')::date AS day,
       (status <> 'skipped' AND attempt_count > 0)::int AS runs,
       (status = 'succeeded')::int AS successes,
       (status IN ('failed', 'timed_out', 'interrupted') AND attempt_count > 0)::int AS failures,
       CASE WHEN status <> 'skipped' THEN 0 WHEN planned_until IS NULL THEN 1 ELSE COALESCE(count, 10000) END AS skips,
       CASE WHEN status <> 'skipped' THEN extract(epoch FROM finished_at - started_at)::float8 END AS seconds,
       CASE WHEN status <> 'skipped'
            THEN extract(epoch FROM started_at - CASE trigger WHEN 'backfill' THEN created_at ELSE planned_for END)::float8
            END AS lag_seconds
  FROM runs
 WHERE status IS NOT NULL;
GRANT SELECT ON run_counts TO foliot_app, foliot_engine;
