-- name: insert
INSERT INTO api_keys (id, workspace_id, principal_id, name, prefix, key_hash, scopes, expires_at, created_at)
VALUES (%(id)s, %(workspace_id)s, %(principal_id)s, %(name)s, %(prefix)s, %(key_hash)s, %(scopes)s, %(expires_at)s, %(now)s);

-- name: find_presented
-- Runs before the workspace is known: the policies show only the row whose hash this transaction presents.
SELECT api_keys.id AS key_id, api_keys.scopes, api_keys.expires_at, api_keys.last_used_at,
       principals.id, principals.workspace_id, principals.kind, principals.name, principals.role
  FROM api_keys
  JOIN principals ON principals.id = api_keys.principal_id
  LEFT JOIN workspaces ON workspaces.id = api_keys.workspace_id
 WHERE api_keys.key_hash = %(key_hash)s
   AND api_keys.revoked_at IS NULL
   AND (api_keys.expires_at IS NULL OR api_keys.expires_at > %(now)s)
   AND principals.active
   AND workspaces.archived_at IS NULL;

-- name: touch
UPDATE api_keys SET last_used_at = %(now)s WHERE key_hash = %(key_hash)s;
