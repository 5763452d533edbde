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
