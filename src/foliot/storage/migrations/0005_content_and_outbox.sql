-- Logs, artifacts, chat rooms, events for listeners, and the outbox of deliveries.

-- Log lines are stored in chunks, one per delivery of a run's worker. The row in logs counts and numbers the lines and ends the
-- log at its limit.
CREATE TABLE logs (
    workspace_id   uuid    NOT NULL,
    run_id         uuid    NOT NULL,
    lines          integer NOT NULL DEFAULT 0,
    bytes          integer NOT NULL DEFAULT 0,
    truncated      boolean NOT NULL DEFAULT false,
    fence          bigint  NOT NULL DEFAULT 0,
    lines_received integer NOT NULL DEFAULT 0,
    CONSTRAINT logs_pkey PRIMARY KEY (run_id)
) WITH (fillfactor = 50);
COMMENT ON COLUMN logs.lines_received IS 'Lines received from the run''s current lease, by the worker''s own count: a repeated delivery is stored once.';

CREATE TABLE log_chunks (
    workspace_id uuid    NOT NULL,
    run_id       uuid    NOT NULL,
    last_seq     integer NOT NULL,
    attempt      integer NOT NULL,
    lines        jsonb   NOT NULL,
    CONSTRAINT log_chunks_pkey PRIMARY KEY (run_id, last_seq)
);
COMMENT ON COLUMN log_chunks.lines IS 'A list of [instant, stream, text]; the last of them has the number last_seq.';


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
    CONSTRAINT artifacts_name_is_unique UNIQUE (run_id, name)
);
COMMENT ON COLUMN artifacts.id IS 'New with each content: a reader of the old chunks never gets a mixture.';
CREATE INDEX artifacts_of_a_workspace ON artifacts (workspace_id) INCLUDE (size);

CREATE TABLE artifact_chunks (
    workspace_id uuid    NOT NULL,
    artifact_id  uuid    NOT NULL,
    part         integer NOT NULL,
    data         bytea   NOT NULL,
    CONSTRAINT artifact_chunks_pkey PRIMARY KEY (artifact_id, part)
);
-- Most artifacts are compressed already: compressing them again costs time and saves nothing.
ALTER TABLE artifact_chunks ALTER COLUMN data SET STORAGE EXTERNAL;


-- Chat rooms and their messages, written by message jobs, people and agents.
CREATE TABLE rooms (
    workspace_id    uuid        NOT NULL,
    id              uuid        NOT NULL,
    key             text,
    name            text        NOT NULL,
    agents          uuid[]      NOT NULL DEFAULT '{}',
    job_id          uuid,
    last_seq        bigint      NOT NULL DEFAULT 0,
    last_message_at timestamptz,
    created_at      timestamptz NOT NULL,
    CONSTRAINT rooms_pkey PRIMARY KEY (id),
    CONSTRAINT rooms_of_one_workspace UNIQUE (workspace_id, id),
    CONSTRAINT rooms_key_is_taken UNIQUE (workspace_id, key),
    CONSTRAINT rooms_workspace_exists FOREIGN KEY (workspace_id) REFERENCES workspaces (id),
    CONSTRAINT rooms_name_fits CHECK (char_length(name) BETWEEN 1 AND 255)
) WITH (fillfactor = 80);
COMMENT ON COLUMN rooms.key IS 'The name that jobs use. Keys of rooms that jobs create for themselves contain a colon; others never do.';
COMMENT ON COLUMN rooms.agents IS 'The agents that may see the room; other members of the workspace see every room.';
COMMENT ON COLUMN rooms.last_seq IS 'Raised under the lock of this row: messages appear in the order of their numbers. Numbers may be missing.';
CREATE INDEX rooms_of_runs ON rooms (last_message_at) WHERE starts_with(key, 'run:');

CREATE TABLE messages (
    workspace_id uuid        NOT NULL,
    room_id      uuid        NOT NULL,
    seq          bigint      NOT NULL,
    id           uuid        NOT NULL,
    kind         text        NOT NULL,
    sender       text        NOT NULL,
    sender_id    uuid,
    text         text        NOT NULL,
    run_id       uuid,
    job_id       uuid,
    sent_at      timestamptz NOT NULL,
    CONSTRAINT messages_pkey PRIMARY KEY (room_id, seq),
    CONSTRAINT messages_room_of_same_workspace FOREIGN KEY (workspace_id, room_id)
        REFERENCES rooms (workspace_id, id) ON DELETE CASCADE,
    CONSTRAINT messages_kind_is_known CHECK (kind IN ('message', 'system_event')),
    CONSTRAINT messages_sender_is_known CHECK (sender IN ('user', 'agent', 'service', 'system'))
);
CREATE UNIQUE INDEX messages_one_per_run ON messages (workspace_id, run_id) WHERE run_id IS NOT NULL;
CREATE INDEX messages_oldest ON messages (sent_at);


-- Workspaces with listeners, and until when. Events are written only while a workspace has listeners, and a while longer so that
-- a listener can reconnect. Without listeners the engine pays one lookup that finds no row.
CREATE TABLE watches (
    workspace_id uuid        NOT NULL,
    since        bigint      NOT NULL,
    until        timestamptz NOT NULL,
    CONSTRAINT watches_pkey PRIMARY KEY (workspace_id)
) WITH (fillfactor = 50);
COMMENT ON COLUMN watches.since IS 'Every event of a transaction with this id or a higher one is stored. A reader behind it has missed events.';

-- Ordered by the writing transaction, then by seq. A transaction id below the lowest one still running gets no more rows, so a
-- reader that stays below it sees every event once, in whatever order transactions commit.
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


-- Deliveries to other systems, written by the transaction that makes them due and sent by couriers outside any transaction.
CREATE TABLE outbox (
    workspace_id  uuid        NOT NULL,
    id            uuid        NOT NULL,
    kind          text        NOT NULL,
    ordering_key  uuid        NOT NULL,
    position      bigint      NOT NULL,
    receiver      text        NOT NULL,
    due_at        timestamptz NOT NULL,
    leased_until  timestamptz,
    sending_since timestamptz NOT NULL,
    attempts      integer     NOT NULL DEFAULT 0,
    fence         bigint      NOT NULL DEFAULT 0,
    status        integer,
    error         text,
    created_at    timestamptz NOT NULL,
    ended_at      timestamptz,
    delivered     boolean,
    CONSTRAINT outbox_pkey PRIMARY KEY (id),
    CONSTRAINT outbox_position_is_unique UNIQUE (ordering_key, position),
    CONSTRAINT outbox_kind_is_known CHECK (kind IN ('room.message')),
    CONSTRAINT outbox_delivered_is_set_at_the_end CHECK ((ended_at IS NULL) = (delivered IS NULL))
) WITH (fillfactor = 80);
COMMENT ON COLUMN outbox.id IS 'The same for every attempt: receivers recognise repeats by it.';
COMMENT ON COLUMN outbox.ordering_key IS 'Deliveries with one key are sent in order: only the first that has not ended. For room.message the room.';
COMMENT ON COLUMN outbox.position IS 'Position among the deliveries of its key. For room.message the number of the message, whose text is read when it is sent.';
COMMENT ON COLUMN outbox.receiver IS 'Host and port. A courier limits the share of each receiver in what it sends for a workspace.';
COMMENT ON COLUMN outbox.due_at IS 'Infinity while it waits behind another delivery of its key; the end of the lease while it is being sent.';
COMMENT ON COLUMN outbox.leased_until IS 'End of the lease of the courier that sends it; NULL without one.';
COMMENT ON COLUMN outbox.sending_since IS 'When sending began, or was restarted by a user. The time limit counts from here.';
COMMENT ON COLUMN outbox.fence IS 'Raised by each lease; only the courier with the current fence may record the result.';
CREATE INDEX outbox_due ON outbox (workspace_id, due_at) WHERE ended_at IS NULL;
CREATE INDEX outbox_first_of_a_key ON outbox (ordering_key, position) WHERE ended_at IS NULL;
CREATE INDEX outbox_ended ON outbox (ended_at) WHERE ended_at IS NOT NULL;

-- A transaction that adds a delivery to a room's ordering key, or ends one, locks the room's webhook row: of two such
-- transactions one sees the other's change, so the next delivery becomes due.
CREATE TABLE webhooks (
    workspace_id  uuid        NOT NULL,
    room_id       uuid        NOT NULL,
    url           text        NOT NULL,
    receiver      text        NOT NULL,
    secret        text,
    set_at        timestamptz NOT NULL,
    delivered_seq bigint,
    delivered_at  timestamptz,
    failing_since timestamptz,
    error         text,
    stopped_at    timestamptz,
    CONSTRAINT webhooks_pkey PRIMARY KEY (room_id),
    CONSTRAINT webhooks_room_of_same_workspace FOREIGN KEY (workspace_id, room_id)
        REFERENCES rooms (workspace_id, id) ON DELETE CASCADE
) WITH (fillfactor = 80);
COMMENT ON COLUMN webhooks.secret IS 'The name of the signing secret. Its value is read for each delivery.';
COMMENT ON COLUMN webhooks.stopped_at IS 'When the receiver answered that it is gone. Nothing is sent until the webhook is set again.';
CREATE INDEX webhooks_by_secret ON webhooks (workspace_id, secret) WHERE secret IS NOT NULL;
