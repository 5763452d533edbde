-- name: held
-- Only who holds the run under this fence may add to it. The lock keeps its end, and rivals for the same name, waiting until this is done.
SELECT leases.workspace_id, workspaces.settings -> 'quotas' -> 'artifact_bytes' AS quota
  FROM leases JOIN workspaces ON workspaces.id = leases.workspace_id
 WHERE leases.run_id = %(run_id)s AND leases.fence = %(fence)s AND leases.worker_id = %(worker_id)s
   FOR UPDATE OF leases;

-- name: others
SELECT count(*) AS others FROM artifacts WHERE run_id = %(run_id)s AND name <> %(name)s;

-- name: used
SELECT COALESCE(sum(size), 0)::bigint AS used FROM artifacts
 WHERE workspace_id = %(workspace_id)s AND NOT (run_id = %(run_id)s AND name = %(name)s);

-- name: forget
WITH old AS (DELETE FROM artifacts WHERE run_id = %(run_id)s AND name = %(name)s RETURNING id)
DELETE FROM artifact_chunks USING old WHERE artifact_id = old.id;

-- name: keep
INSERT INTO artifacts (workspace_id, id, run_id, name, attempt, media_type, size, sha256, created_at)
VALUES (%(workspace_id)s, %(id)s, %(run_id)s, %(name)s, %(attempt)s, %(media_type)s, %(size)s, %(sha256)s, %(now)s);

-- name: keep_part
INSERT INTO artifact_chunks (workspace_id, artifact_id, part, data) VALUES (%(workspace_id)s, %(id)s, %(part)s, %(data)s);

-- name: of_run
SELECT id, name, attempt, media_type, size, sha256, created_at FROM artifacts WHERE run_id = %(run_id)s ORDER BY created_at, name;

-- name: one
SELECT id, name, attempt, media_type, size, sha256, created_at FROM artifacts WHERE run_id = %(run_id)s AND name = %(name)s;

-- name: part
SELECT data FROM artifact_chunks WHERE artifact_id = %(id)s AND part = %(part)s;
