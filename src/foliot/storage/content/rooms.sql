-- name: insert
INSERT INTO rooms (workspace_id, id, key, name, agents, job_id, created_at)
VALUES (%(workspace_id)s, %(id)s, %(key)s, %(name)s, %(agents)s::uuid[], %(job_id)s, %(now)s)
    ON CONFLICT ON CONSTRAINT rooms_key_is_taken DO NOTHING;

-- name: get
SELECT rooms.id, rooms.key, rooms.name, rooms.agents, rooms.job_id, rooms.last_seq, rooms.last_message_at, rooms.created_at,
       webhooks.url AS "webhook.hook.url", webhooks.receiver AS "webhook.hook.receiver", webhooks.secret AS "webhook.hook.secret",
       webhooks.delivered_seq AS "webhook.delivered_seq", webhooks.delivered_at AS "webhook.delivered_at",
       webhooks.failing_since AS "webhook.failing_since", webhooks.error AS "webhook.error", webhooks.stopped_at AS "webhook.stopped_at"
  FROM rooms LEFT JOIN webhooks ON webhooks.room_id = rooms.id
 WHERE rooms.id = %(id)s AND (%(agent)s::uuid IS NULL OR %(agent)s = ANY (agents));

-- name: find_by_key
SELECT rooms.id, rooms.key, rooms.name, rooms.agents, rooms.job_id, rooms.last_seq, rooms.last_message_at, rooms.created_at,
       webhooks.url AS "webhook.hook.url", webhooks.receiver AS "webhook.hook.receiver", webhooks.secret AS "webhook.hook.secret",
       webhooks.delivered_seq AS "webhook.delivered_seq", webhooks.delivered_at AS "webhook.delivered_at",
       webhooks.failing_since AS "webhook.failing_since", webhooks.error AS "webhook.error", webhooks.stopped_at AS "webhook.stopped_at"
  FROM rooms LEFT JOIN webhooks ON webhooks.room_id = rooms.id
 WHERE rooms.workspace_id = %(workspace_id)s AND rooms.key = %(key)s AND (%(agent)s::uuid IS NULL OR %(agent)s = ANY (agents));

-- name: page
SELECT rooms.id, rooms.key, rooms.name, rooms.agents, rooms.job_id, rooms.last_seq, rooms.last_message_at, rooms.created_at,
       webhooks.url AS "webhook.hook.url", webhooks.receiver AS "webhook.hook.receiver", webhooks.secret AS "webhook.hook.secret",
       webhooks.delivered_seq AS "webhook.delivered_seq", webhooks.delivered_at AS "webhook.delivered_at",
       webhooks.failing_since AS "webhook.failing_since", webhooks.error AS "webhook.error", webhooks.stopped_at AS "webhook.stopped_at"
  FROM rooms LEFT JOIN webhooks ON webhooks.room_id = rooms.id
 WHERE rooms.workspace_id = %(workspace_id)s AND rooms.id < %(before)s AND (%(agent)s::uuid IS NULL OR %(agent)s = ANY (agents))
   AND (%(key)s::text IS NULL OR rooms.key = %(key)s)
 ORDER BY rooms.id DESC LIMIT %(limit)s;

-- name: lock
SELECT id FROM rooms WHERE id = %(id)s FOR UPDATE;

-- name: update
UPDATE rooms SET name = %(name)s, agents = %(agents)s::uuid[] WHERE id = %(id)s;

-- name: delete
DELETE FROM rooms WHERE id = %(id)s;

-- name: list_agents
SELECT id FROM principals WHERE id = ANY (%(ids)s) AND kind = 'agent' AND active;

-- name: count
-- Counts to just past the limit.
SELECT count(*) FROM (SELECT FROM rooms WHERE workspace_id = %(workspace_id)s LIMIT %(most)s) AS counted;

-- name: prune
-- Rooms created for one run, once their messages are deleted. The age is checked again after waiting for a row lock. Relies on
-- rooms_of_runs.
DELETE FROM rooms
 WHERE id IN (SELECT old.id FROM rooms AS old
               WHERE starts_with(old.key, 'run:') AND old.last_message_at < %(before)s
                 AND NOT EXISTS (SELECT FROM messages WHERE messages.room_id = old.id)
               LIMIT %(limit)s)
   AND last_message_at < %(before)s;

-- name: append_message
-- The update of last_seq locks the room's row until commit, so messages commit in the order of their numbers and a reader behind a
-- number misses none. No row is inserted if the room is deleted or the run has its message already.
WITH next AS (
    UPDATE rooms SET last_seq = last_seq + 1, last_message_at = %(now)s WHERE id = %(room_id)s RETURNING workspace_id, id, last_seq)
INSERT INTO messages (workspace_id, room_id, seq, id, kind, sender, sender_id, text, run_id, job_id, sent_at)
SELECT workspace_id, id, last_seq, %(id)s, %(kind)s, %(sender)s, %(sender_id)s, %(text)s, %(run_id)s, %(job_id)s, %(now)s FROM next
    ON CONFLICT (workspace_id, run_id) WHERE run_id IS NOT NULL DO NOTHING
RETURNING seq;

-- name: list_messages
SELECT messages.room_id, messages.seq, messages.id, messages.kind, messages.sender AS "sender.kind", messages.sender_id AS "sender.id",
       principals.name AS "sender.name", messages.text, messages.run_id, messages.job_id, messages.sent_at
  FROM messages LEFT JOIN principals ON principals.id = messages.sender_id
 WHERE messages.room_id = %(room_id)s AND messages.seq > %(after)s
 ORDER BY messages.seq LIMIT %(limit)s;

-- name: find_message_of_run
SELECT room_id, seq, id, kind, sender AS "sender.kind", sender_id AS "sender.id", NULL AS "sender.name", text, run_id, job_id, sent_at
  FROM messages WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s;

-- name: find_oldest_seq
SELECT min(seq) FROM messages WHERE room_id = %(room_id)s;

-- name: prune_messages
-- Relies on messages_oldest.
DELETE FROM messages USING (SELECT room_id, seq FROM messages WHERE sent_at < %(before)s ORDER BY sent_at LIMIT %(limit)s) AS old
 WHERE messages.room_id = old.room_id AND messages.seq = old.seq;
