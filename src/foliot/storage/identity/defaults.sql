-- name: lock_shared
-- Transactions that write a job share these locks and do not wait for each other; a change of defaults takes one alone. So no job is
-- stored with an old default after the change has looked for jobs to change. A statement of its own: the next one sees the change.
SELECT pg_advisory_xact_lock_shared(hashtextextended('foliot.defaults', 0)),
       pg_advisory_xact_lock_shared(hashtextextended('foliot.defaults:' || %(workspace_id)s::uuid, 0));

-- name: lock_workspace
SELECT pg_advisory_xact_lock(hashtextextended('foliot.defaults:' || %(workspace_id)s::uuid, 0));

-- name: lock_installation
SELECT pg_advisory_xact_lock(hashtextextended('foliot.defaults', 0));

-- name: load
SELECT workspaces.defaults AS workspace, installation.defaults AS installation, workspaces.defaults_rev AS revision
  FROM workspaces CROSS JOIN installation WHERE workspaces.id = %(workspace_id)s;

-- name: load_installation
SELECT defaults FROM installation;

-- name: store_workspace
UPDATE workspaces SET defaults = %(defaults)s, defaults_rev = defaults_rev + 1 WHERE id = %(workspace_id)s;

-- name: store_installation
UPDATE installation SET defaults = %(defaults)s;

-- name: mark_all
UPDATE workspaces SET defaults_rev = defaults_rev + 1 WHERE archived_at IS NULL;

-- name: next_unapplied
-- Relies on workspaces_with_new_defaults.
SELECT id FROM workspaces WHERE defaults_rev <> defaults_applied AND archived_at IS NULL ORDER BY id LIMIT 1;

-- name: list_inheriting
-- Relies on jobs_inheriting.
SELECT id, definition FROM jobs
 WHERE workspace_id = %(workspace_id)s AND definition ? 'inherited' AND status <> 'archived' AND id > %(after)s
 ORDER BY id
 LIMIT %(limit)s;

-- name: mark_applied
UPDATE workspaces SET defaults_applied = %(revision)s WHERE id = %(workspace_id)s AND defaults_applied < %(revision)s;
