-- name: lock_maker
-- Shared: a key may make several at once, but none while it is being revoked.
SELECT revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %(now)s) AS is_valid FROM api_keys WHERE id = %(id)s FOR SHARE;

-- name: name_makers
SELECT set_config('foliot.makers', %(makers)s::uuid[]::text, true);

-- name: made
-- Those that are over are walked through too: what they made may still be valid.
SELECT id, workspace_id, revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %(now)s) AS is_valid
  FROM api_keys
 WHERE made_by = ANY (%(makers)s::uuid[]);

-- name: lock
SELECT api_keys.*, principals.name AS principal_name, principals.kind, principals.role, principals.active
  FROM api_keys JOIN principals ON principals.id = api_keys.principal_id
 WHERE api_keys.id = ANY (%(ids)s)
 ORDER BY api_keys.id
   FOR UPDATE OF api_keys;
