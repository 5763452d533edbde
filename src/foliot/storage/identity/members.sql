-- name: insert
INSERT INTO principals (id, workspace_id, kind, name, email, role, created_at)
VALUES (%(id)s, %(workspace_id)s, %(kind)s, %(name)s, %(email)s, %(role)s, %(now)s);

-- name: system_exists
SELECT EXISTS (SELECT FROM principals WHERE workspace_id IS NULL) AS so;

-- name: system_by_name
-- The lock keeps two commands that revive the same administrator from making it twice.
SELECT id, workspace_id, kind, name, role, active FROM principals
 WHERE workspace_id IS NULL AND kind = 'system' AND name = %(name)s FOR UPDATE;

-- name: activate
UPDATE principals SET active = true WHERE id = %(id)s;

-- name: page
SELECT id, workspace_id, kind, name, email, role, active, created_at
  FROM principals
 WHERE workspace_id = %(workspace_id)s
   AND (%(id)s::uuid IS NULL OR id = %(id)s)
   AND (%(kind)s::text IS NULL OR kind = %(kind)s)
   AND (%(is_active)s::boolean IS NULL OR active = %(is_active)s)
   AND (%(before)s::uuid IS NULL OR id < %(before)s)
 ORDER BY id DESC
 LIMIT %(limit)s;

-- name: lock
-- The one in hand and every administrator, in the order of ids: who takes one of two away must see the other stay.
SELECT id, role, active FROM principals
 WHERE workspace_id = %(workspace_id)s AND (id = %(id)s OR (role = 'admin' AND active))
 ORDER BY id
   FOR UPDATE;

-- name: change
UPDATE principals SET name = %(name)s, email = %(email)s, role = %(role)s, active = %(active)s WHERE id = %(id)s;

-- name: find
-- Of the workspace, or of the installation where this transaction may see those.
SELECT id, workspace_id, kind, name, role, active FROM principals WHERE id = %(id)s;
