-- name: append
-- The room's row is locked by raising its number, until commit: who reads behind a number misses none that comes later. Nothing
-- is appended where the room is gone, or where this run has its message already.
WITH place AS (
    UPDATE rooms SET last_seq = last_seq + 1, last_message_at = %(now)s WHERE id = %(room_id)s RETURNING workspace_id, id, last_seq)
INSERT INTO messages (workspace_id, room_id, seq, id, kind, sender, sender_id, text, run_id, job_id, sent_at)
SELECT workspace_id, id, last_seq, %(id)s, %(kind)s, %(sender)s, %(sender_id)s, %(text)s, %(run_id)s, %(job_id)s, %(now)s FROM place
    ON CONFLICT (workspace_id, run_id) WHERE run_id IS NOT NULL DO NOTHING
RETURNING seq;

-- name: after
SELECT messages.room_id, messages.seq, messages.id, messages.kind, messages.sender, messages.sender_id, principals.name AS sender_name,
       messages.text, messages.run_id, messages.job_id, messages.sent_at
  FROM messages LEFT JOIN principals ON principals.id = messages.sender_id
 WHERE messages.room_id = %(room_id)s AND messages.seq > %(after)s
 ORDER BY messages.seq LIMIT %(limit)s;

-- name: of_run
SELECT room_id, seq, id, kind, sender, sender_id, NULL AS sender_name, text, run_id, job_id, sent_at
  FROM messages WHERE workspace_id = %(workspace_id)s AND run_id = %(run_id)s;

-- name: oldest_seq
SELECT min(seq) AS seq FROM messages WHERE room_id = %(room_id)s;

-- name: prune
DELETE FROM messages USING (SELECT room_id, seq FROM messages WHERE sent_at < %(before)s ORDER BY sent_at LIMIT %(limit)s) AS old
 WHERE messages.room_id = old.room_id AND messages.seq = old.seq;
