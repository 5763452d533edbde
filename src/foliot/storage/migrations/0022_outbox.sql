-- The outbox: what is to leave the house, written by the transaction that makes it due, and sent by couriers.
-- And the webhooks of rooms, the first to use it.

CREATE TABLE outbox (
    workspace_id uuid        NOT NULL,
    id           uuid        NOT NULL,
    kind         text        NOT NULL,
    lane         uuid        NOT NULL,
    place        bigint      NOT NULL,
    receiver     text        NOT NULL,
    due_at       timestamptz NOT NULL,
    leased_until timestamptz,
    since        timestamptz NOT NULL,
    attempts     integer     NOT NULL DEFAULT 0,
    fence        bigint      NOT NULL DEFAULT 0,
    status       integer,
    error        text,
    created_at   timestamptz NOT NULL,
    ended_at     timestamptz,
    delivered    boolean,
    CONSTRAINT outbox_pkey PRIMARY KEY (id),
    CONSTRAINT outbox_one_by_a_place UNIQUE (lane, place),
    CONSTRAINT outbox_kind_known CHECK (kind IN ('room.message')),
    CONSTRAINT outbox_ends_one_way CHECK ((ended_at IS NULL) = (delivered IS NULL))
) WITH (fillfactor = 80);
COMMENT ON COLUMN outbox.id IS 'The same however often it is sent: receivers know repeats by it.';
COMMENT ON COLUMN outbox.lane IS 'What is kept in order: of a lane only the first that has not ended is sent. For room.message the room.';
COMMENT ON COLUMN outbox.place IS 'Its place in the lane. For room.message the number of the message, which is read there when it is sent.';
COMMENT ON COLUMN outbox.receiver IS 'Host and port: of what a courier does for a workspace, no receiver gets more than its share.';
COMMENT ON COLUMN outbox.due_at IS 'Infinity for one that waits behind others of its lane; for one that is being sent the end of the lease.';
COMMENT ON COLUMN outbox.leased_until IS 'Until then it is in the hands of the courier that took it; NULL where nobody has it.';
COMMENT ON COLUMN outbox.since IS 'When sending began, or began again by hand: patience counts from here.';
COMMENT ON COLUMN outbox.fence IS 'Raised whenever a courier takes it; only the last one may say what came of it.';
CREATE INDEX outbox_due ON outbox (workspace_id, due_at) WHERE ended_at IS NULL;
CREATE INDEX outbox_first_of_a_lane ON outbox (lane, place) WHERE ended_at IS NULL;
CREATE INDEX outbox_ended ON outbox (ended_at) WHERE ended_at IS NOT NULL;

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
COMMENT ON COLUMN webhooks.secret IS 'The name of the secret to sign with. Its value is read when something is sent.';
COMMENT ON COLUMN webhooks.stopped_at IS 'When the receiver said that it is gone for good. Nothing is sent until the webhook is set again.';
CREATE INDEX webhooks_by_secret ON webhooks (workspace_id, secret) WHERE secret IS NOT NULL;
-- Its row is locked by whoever puts something into the lane of its room or ends something there, so one of them sees the other.

CREATE INDEX messages_oldest ON messages (sent_at);
CREATE INDEX rooms_of_runs ON rooms (last_message_at) WHERE starts_with(key, 'run:');


DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['outbox', 'webhooks'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY %I ON %I TO foliot_app '
                       'USING (workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid) '
                       'WITH CHECK (workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid)',
                       name || '_own_workspace', name);
    END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON outbox, webhooks TO foliot_app;

-- Couriers take from all workspaces; what a message says, and where it goes, they read in its own.
CREATE POLICY outbox_engine ON outbox TO foliot_engine USING (true) WITH CHECK (true);
GRANT SELECT, UPDATE (due_at, leased_until, attempts, fence), DELETE ON outbox TO foliot_engine;

-- The janitor removes what is old, and needs to see no more of it than its age.
CREATE POLICY messages_engine_prunes ON messages FOR SELECT TO foliot_engine USING (true);
CREATE POLICY messages_engine_removes ON messages FOR DELETE TO foliot_engine USING (true);
GRANT SELECT (workspace_id, room_id, seq, sent_at), DELETE ON messages TO foliot_engine;
CREATE POLICY rooms_engine_prunes ON rooms FOR SELECT TO foliot_engine USING (true);
CREATE POLICY rooms_engine_removes ON rooms FOR DELETE TO foliot_engine USING (true);
GRANT SELECT (workspace_id, id, key, last_message_at), DELETE ON rooms TO foliot_engine;
