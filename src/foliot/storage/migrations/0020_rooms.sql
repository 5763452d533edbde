-- Rooms, and the messages in them: what message jobs leave for people and agents to read, and what these answer.

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
COMMENT ON COLUMN rooms.key IS 'What jobs name it by. Those that jobs make for themselves hold a colon, which no other key does.';
COMMENT ON COLUMN rooms.agents IS 'The agents that may see it; other members of the workspace see every room.';
COMMENT ON COLUMN rooms.last_seq IS 'Raised under the lock of this row, so messages appear in the order of their numbers; some may be missing.';

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
    CONSTRAINT messages_kind_known CHECK (kind IN ('message', 'system_event')),
    CONSTRAINT messages_sender_known CHECK (sender IN ('user', 'agent', 'service', 'system'))
);
CREATE UNIQUE INDEX messages_one_per_run ON messages (workspace_id, run_id) WHERE run_id IS NOT NULL;

DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY['rooms', 'messages'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY', name);
        EXECUTE format('CREATE POLICY %I ON %I TO foliot_app '
                       'USING (workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid) '
                       'WITH CHECK (workspace_id = NULLIF(current_setting(''foliot.workspace'', true), '''')::uuid)',
                       name || '_own_workspace', name);
    END LOOP;
END $$;
GRANT SELECT, INSERT, UPDATE, DELETE ON rooms TO foliot_app;
GRANT SELECT, INSERT ON messages TO foliot_app;
