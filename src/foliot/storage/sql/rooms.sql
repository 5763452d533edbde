-- name: insert
INSERT INTO rooms (workspace_id, id, key, name, agents, job_id, created_at)
VALUES (%(workspace_id)s, %(id)s, %(key)s, %(name)s, %(agents)s::uuid[], %(job_id)s, %(now)s)
    ON CONFLICT ON CONSTRAINT rooms_key_is_taken DO NOTHING;

-- name: get
SELECT id, key, name, agents, job_id, last_seq, last_message_at, created_at
  FROM rooms WHERE id = %(id)s AND (%(agent)s::uuid IS NULL OR %(agent)s = ANY (agents));

-- name: by_key
SELECT id, key, name, agents, job_id, last_seq, last_message_at, created_at
  FROM rooms WHERE workspace_id = %(workspace_id)s AND key = %(key)s AND (%(agent)s::uuid IS NULL OR %(agent)s = ANY (agents));

-- name: page
SELECT id, key, name, agents, job_id, last_seq, last_message_at, created_at
  FROM rooms
 WHERE workspace_id = %(workspace_id)s AND id < %(before)s AND (%(agent)s::uuid IS NULL OR %(agent)s = ANY (agents))
   AND (%(key)s::text IS NULL OR key = %(key)s)
 ORDER BY id DESC LIMIT %(limit)s;

-- name: lock
SELECT id, key, name, agents, job_id, last_seq, last_message_at, created_at FROM rooms WHERE id = %(id)s FOR UPDATE;

-- name: change
UPDATE rooms SET name = %(name)s, agents = %(agents)s::uuid[] WHERE id = %(id)s;

-- name: delete
DELETE FROM rooms WHERE id = %(id)s;

-- name: agents_among
SELECT id FROM principals WHERE id = ANY (%(ids)s) AND kind = 'agent' AND active;
