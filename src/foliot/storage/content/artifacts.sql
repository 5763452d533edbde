-- name: lock_lease
-- Only the worker with this lease may add an artifact. The lock makes the run's settlement, and rival uploads of the name, wait.
SELECT leases.workspace_id, leases.attempts AS attempt, workspaces.settings -> 'quotas' -> 'artifact_bytes' AS quota
  FROM leases JOIN workspaces ON workspaces.id = leases.workspace_id
 WHERE leases.run_id = %(run_id)s AND leases.fence = %(fence)s AND leases.worker_id = %(worker_id)s
   FOR UPDATE OF leases;

-- name: count_others
SELECT count(*) FROM artifacts WHERE run_id = %(run_id)s AND name <> %(name)s;

-- name: sum_used_bytes
-- Relies on artifacts_of_a_workspace, which includes the size.
SELECT COALESCE(sum(size), 0)::bigint FROM artifacts
 WHERE workspace_id = %(workspace_id)s AND NOT (run_id = %(run_id)s AND name = %(name)s);

-- name: delete
WITH old AS (DELETE FROM artifacts WHERE run_id = %(run_id)s AND name = %(name)s RETURNING id)
DELETE FROM artifact_chunks USING old WHERE artifact_id = old.id;

-- name: insert
INSERT INTO artifacts (workspace_id, id, run_id, name, attempt, media_type, size, sha256, created_at)
VALUES (%(workspace_id)s, %(id)s, %(run_id)s, %(name)s, %(attempt)s, %(media_type)s, %(size)s, %(sha256)s, %(now)s);

-- name: insert_part
INSERT INTO artifact_chunks (workspace_id, artifact_id, part, data) VALUES (%(workspace_id)s, %(id)s, %(part)s, %(data)s);

-- name: list_of_run
SELECT name, attempt, media_type, size, sha256, created_at FROM artifacts WHERE run_id = %(run_id)s ORDER BY created_at, name;

-- name: get
SELECT id, name AS "artifact.name", attempt AS "artifact.attempt", media_type AS "artifact.media_type", size AS "artifact.size",
       sha256 AS "artifact.sha256", created_at AS "artifact.created_at"
  FROM artifacts WHERE run_id = %(run_id)s AND name = %(name)s;

-- name: load_part
SELECT data FROM artifact_chunks WHERE artifact_id = %(id)s AND part = %(part)s;
