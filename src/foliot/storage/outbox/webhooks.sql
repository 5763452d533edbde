-- name: set
INSERT INTO webhooks (workspace_id, room_id, url, receiver, secret, set_at)
VALUES (%(workspace_id)s, %(room_id)s, %(url)s, %(receiver)s, %(secret)s, %(now)s)
    ON CONFLICT (room_id) DO UPDATE
   SET url = EXCLUDED.url, receiver = EXCLUDED.receiver, secret = EXCLUDED.secret, set_at = EXCLUDED.set_at,
       failing_since = NULL, error = NULL, stopped_at = NULL;

-- name: remove
DELETE FROM webhooks WHERE room_id = %(room_id)s;

-- name: lock
SELECT url, receiver, secret, delivered_seq, delivered_at, failing_since, error, stopped_at
  FROM webhooks WHERE room_id = %(room_id)s FOR UPDATE;

-- name: went_well
UPDATE webhooks SET delivered_seq = GREATEST(delivered_seq, %(seq)s), delivered_at = %(now)s, failing_since = NULL, error = NULL
 WHERE room_id = %(room_id)s;

-- name: went_wrong
UPDATE webhooks SET failing_since = COALESCE(failing_since, %(now)s), error = %(error)s,
       stopped_at = CASE WHEN %(stops)s THEN %(now)s ELSE stopped_at END
 WHERE room_id = %(room_id)s;

-- name: signing_with
SELECT rooms.name
  FROM webhooks JOIN rooms ON rooms.id = webhooks.room_id
 WHERE webhooks.workspace_id = %(workspace_id)s AND webhooks.secret = %(secret)s
 ORDER BY rooms.name LIMIT %(limit)s;

-- name: load
-- What is to be sent, and where to: everything of it in the workspace of the transaction.
SELECT wanted.room_id, wanted.seq, webhooks.url, webhooks.receiver, webhooks.secret, rooms.key AS room_key, rooms.name AS room_name,
       messages.id, messages.kind, messages.sender, messages.sender_id, principals.name AS sender_name, messages.text, messages.run_id,
       messages.job_id, messages.sent_at
  FROM unnest(%(room_ids)s::uuid[], %(seqs)s::bigint[]) AS wanted (room_id, seq)
  JOIN webhooks ON webhooks.room_id = wanted.room_id
  JOIN rooms ON rooms.id = wanted.room_id
  LEFT JOIN messages ON messages.room_id = wanted.room_id AND messages.seq = wanted.seq
  LEFT JOIN principals ON principals.id = messages.sender_id;
