-- What is told to whoever listens: events, the lines that runs write, and workers that fell silent.

-- Who listens to a workspace, and until when. Only while somebody does (and for a while after, so that they can come back) are events
-- written: a workspace without listeners costs the engine one look at this table, which then has no row for it.
CREATE TABLE watches (
    workspace_id uuid        NOT NULL,
    since        bigint      NOT NULL,
    until        timestamptz NOT NULL,
    CONSTRAINT watches_pkey PRIMARY KEY (workspace_id)
) WITH (fillfactor = 50);
COMMENT ON COLUMN watches.since IS 'Every event of a transaction with this number or a higher one is here: who has seen less has a gap.';

-- Ordered by the transaction that wrote them, then by their place in it. A transaction below the lowest one still running can get no
-- more rows, so a reader who stays below it sees everything once, whatever order commits come in.
CREATE TABLE events (
    workspace_id uuid        NOT NULL,
    xid          bigint      NOT NULL DEFAULT (pg_current_xact_id()::text::bigint),
    seq          bigint      NOT NULL GENERATED ALWAYS AS IDENTITY,
    at           timestamptz NOT NULL,
    kind         text        NOT NULL,
    object_id    text,
    job_id       uuid,
    run_id       uuid,
    attempt      integer,
    actor        text,
    CONSTRAINT events_pkey PRIMARY KEY (workspace_id, xid, seq)
);


-- Lines in chunks: what one run wrote between two deliveries. The head counts them, gives each its number and knows when to stop.
CREATE TABLE logs (
    workspace_id uuid    NOT NULL,
    run_id       uuid    NOT NULL,
    lines        integer NOT NULL DEFAULT 0,
    bytes        integer NOT NULL DEFAULT 0,
    truncated    boolean NOT NULL DEFAULT false,
    CONSTRAINT logs_pkey PRIMARY KEY (run_id)
) WITH (fillfactor = 50);

CREATE TABLE log_chunks (
    workspace_id uuid    NOT NULL,
    run_id       uuid    NOT NULL,
    last_seq     integer NOT NULL,
    attempt      integer NOT NULL,
    lines        jsonb   NOT NULL,
    CONSTRAINT log_chunks_pkey PRIMARY KEY (run_id, last_seq)
);
COMMENT ON COLUMN log_chunks.lines IS 'A list of [instant, stream, text]; the last of them has the number last_seq.';


ALTER TABLE workers ADD COLUMN beat_at timestamptz;

-- Workers that were struck off for their silence, for people to see. The engine knows them no more.
CREATE TABLE lost_workers (
    workspace_id uuid,
    id           uuid        NOT NULL,
    name         text        NOT NULL,
    queues       text[]      NOT NULL,
    types        text[]      NOT NULL,
    capacity     integer     NOT NULL,
    started_at   timestamptz NOT NULL,
    beat_at      timestamptz NOT NULL,
    version      text        NOT NULL,
    CONSTRAINT lost_workers_pkey PRIMARY KEY (id)
);


DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['watches', 'events', 'logs', 'log_chunks', 'lost_workers'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY %I ON %I TO foliot_engine USING (true) WITH CHECK (true)', name || '_engine', name);
    END LOOP;
    FOREACH name IN ARRAY ARRAY['watches', 'events', 'logs', 'log_chunks'] LOOP
        EXECUTE format('CREATE POLICY %I ON %I TO foliot_app '
                       'USING (workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid) '
                       'WITH CHECK (workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid)',
                       name || '_own_workspace', name);
    END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE ON watches TO foliot_app;
GRANT SELECT, UPDATE, DELETE ON watches TO foliot_engine;
GRANT SELECT, INSERT ON events TO foliot_app;
GRANT SELECT, INSERT, DELETE ON events TO foliot_engine;
GRANT SELECT, DELETE ON logs, log_chunks TO foliot_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON logs TO foliot_engine;
GRANT SELECT, INSERT, DELETE ON log_chunks TO foliot_engine;
GRANT SELECT ON lost_workers TO foliot_app;
GRANT SELECT, INSERT, DELETE ON lost_workers TO foliot_engine;
CREATE POLICY lost_workers_own_workspace ON lost_workers FOR SELECT TO foliot_app
    USING (workspace_id = NULLIF(current_setting('foliot.workspace', true), '')::uuid
           OR (workspace_id IS NULL AND NULLIF(current_setting('foliot.workspace', true), '') IS NOT NULL));
