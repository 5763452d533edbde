-- name: insert
INSERT INTO api_keys (id, workspace_id, principal_id, name, prefix, key_hash, scopes, expires_at, made_by, session, max_jobs, min_interval,
                      created_at)
VALUES (%(id)s, %(workspace_id)s, %(principal_id)s, %(name)s, %(prefix)s, %(key_hash)s, %(scopes)s, %(expires_at)s, %(made_by)s,
        %(is_session)s, %(max_jobs)s, %(min_interval)s, %(now)s);

-- name: find_presented
-- Runs before the workspace is known: the policies show only the row whose hash this transaction presents.
SELECT api_keys.id AS "holder.key_id", api_keys.prefix AS "holder.prefix", api_keys.scopes AS "holder.scopes",
       api_keys.expires_at AS "holder.expires_at", api_keys.max_jobs AS "holder.budget.max_jobs",
       api_keys.min_interval AS "holder.budget.min_interval", api_keys.last_used_at, principals.id AS "holder.principal.id",
       principals.workspace_id AS "holder.principal.workspace_id", principals.kind AS "holder.principal.kind",
       principals.name AS "holder.principal.name", principals.role AS "holder.principal.role"
  FROM api_keys
  JOIN principals ON principals.id = api_keys.principal_id
  LEFT JOIN workspaces ON workspaces.id = api_keys.workspace_id
 WHERE api_keys.key_hash = %(key_hash)s
   AND api_keys.revoked_at IS NULL
   AND (api_keys.expires_at IS NULL OR api_keys.expires_at > %(now)s)
   AND principals.active
   AND workspaces.archived_at IS NULL;

-- name: touch
-- The condition is repeated here: many nodes together write it no more often than one.
UPDATE api_keys SET last_used_at = %(now)s
 WHERE key_hash = %(key_hash)s AND (last_used_at IS NULL OR last_used_at <= %(before)s);

-- name: page
-- A caller's own keys; for an administrator the workspace's; for a system key the installation's.
SELECT api_keys.id, principals.id AS "holder.id", principals.workspace_id AS "holder.workspace_id", principals.kind AS "holder.kind",
       principals.name AS "holder.name", principals.role AS "holder.role", api_keys.name,
       api_keys.prefix, api_keys.scopes, api_keys.expires_at, api_keys.last_used_at, api_keys.revoked_at, api_keys.created_at, api_keys.made_by,
       api_keys.session AS is_session, api_keys.max_jobs AS "budget.max_jobs", api_keys.min_interval AS "budget.min_interval"
  FROM api_keys JOIN principals ON principals.id = api_keys.principal_id
 WHERE (api_keys.principal_id = %(own)s
        OR (%(is_admin)s AND api_keys.workspace_id = %(workspace_id)s)
        OR (%(is_system)s AND api_keys.workspace_id IS NULL))
   AND (%(id)s::uuid IS NULL OR api_keys.id = %(id)s)
   AND (%(principal_id)s::uuid IS NULL OR api_keys.principal_id = %(principal_id)s)
   AND (%(is_revoked)s::boolean IS NULL OR (api_keys.revoked_at IS NOT NULL) = %(is_revoked)s)
   AND (%(before)s::uuid IS NULL OR api_keys.id < %(before)s)
 ORDER BY api_keys.id DESC
 LIMIT %(limit)s;

-- name: lock
SELECT id FROM api_keys WHERE id = %(id)s FOR UPDATE;

-- name: update
UPDATE api_keys SET name = %(name)s, scopes = %(scopes)s, expires_at = %(expires_at)s WHERE id = %(id)s;

-- name: revoke
UPDATE api_keys SET revoked_at = %(now)s WHERE id = %(id)s AND revoked_at IS NULL;

-- name: revoke_of_principal
UPDATE api_keys SET revoked_at = %(now)s WHERE principal_id = %(principal_id)s AND revoked_at IS NULL;

-- name: revoke_of_workspace
UPDATE api_keys SET revoked_at = %(now)s WHERE workspace_id = %(workspace_id)s AND revoked_at IS NULL;

-- name: count_valid
SELECT count(*) FROM api_keys
 WHERE workspace_id = %(workspace_id)s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %(now)s);

-- name: lock_maker
-- FOR SHARE: a key may create several keys at once, but none while it is being revoked.
SELECT revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %(now)s) FROM api_keys WHERE id = %(id)s FOR SHARE;

-- name: session_maker
-- For a session: the key that it was opened with, or none where another proof was. No row for any other key.
SELECT own.made_by AS id, maker.expires_at
  FROM api_keys AS own LEFT JOIN api_keys AS maker ON maker.id = own.made_by
 WHERE own.id = %(id)s AND own.session;

-- name: maker_of
-- FOR SHARE: the maker is not revoked while what it made is replaced.
SELECT maker.id, maker.expires_at
  FROM api_keys AS own JOIN api_keys AS maker ON maker.id = own.made_by
 WHERE own.id = %(id)s AND maker.revoked_at IS NULL AND (maker.expires_at IS NULL OR maker.expires_at > %(now)s)
   FOR SHARE OF maker;

-- name: set_makers
-- The policy api_keys_of_named_makers shows the keys created by these, in every workspace.
SELECT set_config('foliot.makers', %(makers)s::uuid[]::text, true);

-- name: list_made_by
-- Includes keys that are no longer valid: those they created may be.
SELECT id, workspace_id, revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %(now)s) AS is_valid
  FROM api_keys
 WHERE made_by = ANY (%(makers)s::uuid[]);

-- name: lock_made
SELECT api_keys.id, principals.id AS "holder.id", principals.workspace_id AS "holder.workspace_id", principals.kind AS "holder.kind",
       principals.name AS "holder.name", principals.role AS "holder.role", api_keys.name,
       api_keys.prefix, api_keys.scopes, api_keys.expires_at, api_keys.last_used_at, api_keys.revoked_at, api_keys.created_at, api_keys.made_by,
       api_keys.session AS is_session
  FROM api_keys JOIN principals ON principals.id = api_keys.principal_id
 WHERE api_keys.id = ANY (%(ids)s)
 ORDER BY api_keys.id
   FOR UPDATE OF api_keys;
