-- name: set
INSERT INTO webhooks (workspace_id, room_id, url, receiver, secret, set_at)
VALUES (%(workspace_id)s, %(room_id)s, %(url)s, %(receiver)s, %(secret)s, %(now)s)
    ON CONFLICT (room_id) DO UPDATE
   SET url = EXCLUDED.url, receiver = EXCLUDED.receiver, secret = EXCLUDED.secret, set_at = EXCLUDED.set_at,
       failing_since = NULL, error = NULL, stopped_at = NULL;

-- name: remove
DELETE FROM webhooks WHERE room_id = %(room_id)s;

-- name: lock
SELECT url AS "hook.url", receiver AS "hook.receiver", secret AS "hook.secret", delivered_seq, delivered_at, failing_since, error, stopped_at
  FROM webhooks WHERE room_id = %(room_id)s FOR UPDATE;

-- name: record_success
UPDATE webhooks SET delivered_seq = GREATEST(delivered_seq, %(seq)s), delivered_at = %(now)s, failing_since = NULL, error = NULL
 WHERE room_id = %(room_id)s;

-- name: record_failure
UPDATE webhooks SET failing_since = COALESCE(failing_since, %(now)s), error = %(error)s,
       stopped_at = CASE WHEN %(stops)s THEN %(now)s ELSE stopped_at END
 WHERE room_id = %(room_id)s;

-- name: load_deliveries
-- Messages and their webhooks, in the transaction's workspace. LEFT JOIN: the message may have been deleted.
SELECT requested.room_id, requested.seq, webhooks.url AS "hook.url", webhooks.receiver AS "hook.receiver", webhooks.secret AS "hook.secret",
       rooms.key AS room_key, rooms.name AS room_name, messages.room_id AS "message.room_id", messages.seq AS "message.seq",
       messages.id AS "message.id", messages.kind AS "message.kind", messages.sender AS "message.sender.kind",
       messages.sender_id AS "message.sender.id", principals.name AS "message.sender.name", messages.text AS "message.text",
       messages.run_id AS "message.run_id", messages.job_id AS "message.job_id", messages.sent_at AS "message.sent_at"
  FROM unnest(%(room_ids)s::uuid[], %(seqs)s::bigint[]) AS requested (room_id, seq)
  JOIN webhooks ON webhooks.room_id = requested.room_id
  JOIN rooms ON rooms.id = requested.room_id
  LEFT JOIN messages ON messages.room_id = requested.room_id AND messages.seq = requested.seq
  LEFT JOIN principals ON principals.id = messages.sender_id;
