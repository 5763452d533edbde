-- name: insert
INSERT INTO principals (id, workspace_id, kind, name, email, role, created_at)
VALUES (%(id)s, %(workspace_id)s, %(kind)s, %(name)s, %(email)s, %(role)s, %(now)s);

-- name: system_principal_exists
SELECT EXISTS (SELECT FROM principals WHERE workspace_id IS NULL);

-- name: lock_system_principal
-- FOR UPDATE: of two commands that reactivate the same administrator, the second sees the first's change.
SELECT id, workspace_id, kind, name, role FROM principals
 WHERE workspace_id IS NULL AND kind = 'system' AND name = %(name)s FOR UPDATE;

-- name: activate
UPDATE principals SET active = true WHERE id = %(id)s AND NOT active;

-- name: page
SELECT id AS "principal.id", workspace_id AS "principal.workspace_id", kind AS "principal.kind", name AS "principal.name",
       role AS "principal.role", email, active AS is_active, created_at,
       (SELECT per_day FROM fire_quotas WHERE fire_quotas.workspace_id = principals.workspace_id AND subject_id = id) AS fires_per_day
  FROM principals
 WHERE workspace_id = %(workspace_id)s
   AND (%(id)s::uuid IS NULL OR id = %(id)s)
   AND (%(kind)s::text IS NULL OR kind = %(kind)s)
   AND (%(is_active)s::boolean IS NULL OR active = %(is_active)s)
   AND (%(before)s::uuid IS NULL OR id < %(before)s)
 ORDER BY id DESC
 LIMIT %(limit)s;

-- name: lock
-- The member and every administrator, in the order of ids. Of two transactions that each remove one of two administrators, the
-- second sees that the first is gone.
SELECT id FROM principals
 WHERE workspace_id = %(workspace_id)s AND (id = %(id)s OR (role = 'admin' AND active))
 ORDER BY id
   FOR UPDATE;

-- name: lock_shared
-- FOR SHARE: the removal of a member waits for the jobs that are being given to it, and then finds them.
SELECT id AS "principal.id", workspace_id AS "principal.workspace_id", kind AS "principal.kind", name AS "principal.name",
       role AS "principal.role", email, active AS is_active, created_at,
       (SELECT per_day FROM fire_quotas WHERE fire_quotas.workspace_id = principals.workspace_id AND subject_id = id) AS fires_per_day
  FROM principals
 WHERE workspace_id = %(workspace_id)s
   AND (id::text = lower(%(given)s) OR lower(name) = lower(%(given)s) OR lower(email) = lower(%(given)s))
 ORDER BY id
 LIMIT 10
   FOR SHARE;

-- name: find_person
-- At most one: principals_email_is_taken.
SELECT id, workspace_id, kind, name, role FROM principals
 WHERE workspace_id = %(workspace_id)s AND lower(email) = lower(%(email)s) AND kind = 'user' AND active;

-- name: update
UPDATE principals SET name = %(name)s, email = %(email)s, role = %(role)s, active = %(active)s WHERE id = %(id)s;

-- name: find
-- A principal of the workspace, or of the installation where this transaction sees those.
SELECT id AS "principal.id", workspace_id AS "principal.workspace_id", kind AS "principal.kind", name AS "principal.name",
       role AS "principal.role", email, active AS is_active, created_at,
       (SELECT per_day FROM fire_quotas WHERE fire_quotas.workspace_id = principals.workspace_id AND subject_id = id) AS fires_per_day
  FROM principals WHERE id = %(id)s;
