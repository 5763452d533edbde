-- name: insert_missing
INSERT INTO workspaces (id, slug, name, default_timezone, created_at) VALUES (%(id)s, %(slug)s, %(name)s, %(timezone)s, %(now)s)
ON CONFLICT ON CONSTRAINT workspaces_slug_is_taken DO NOTHING;

-- name: find_by_slug
SELECT id, slug, name, default_timezone, settings, created_at, archived_at FROM workspaces WHERE slug = %(slug)s;

-- name: get
SELECT id, slug, name, default_timezone, settings, created_at, archived_at FROM workspaces WHERE id = %(id)s;

-- name: load_slugs
SELECT id, slug FROM workspaces WHERE id = ANY (%(ids)s::uuid[]);

-- name: insert
INSERT INTO workspaces (id, slug, name, default_timezone, settings, created_at)
VALUES (%(id)s, %(slug)s, %(name)s, %(default_timezone)s, %(settings)s, %(now)s)
ON CONFLICT ON CONSTRAINT workspaces_slug_is_taken DO NOTHING;

-- name: page
SELECT id, slug, name, default_timezone, settings, created_at, archived_at
  FROM workspaces
 WHERE (%(after)s::text IS NULL OR slug > %(after)s) AND (%(is_archived)s::boolean IS NULL OR (archived_at IS NOT NULL) = %(is_archived)s)
 ORDER BY slug
 LIMIT %(limit)s;

-- name: lock
SELECT id, slug, name, default_timezone, settings, created_at, archived_at FROM workspaces WHERE id = %(id)s FOR UPDATE;

-- name: update
UPDATE workspaces SET name = %(name)s, default_timezone = %(default_timezone)s, settings = %(settings)s WHERE id = %(id)s;

-- name: set_timezone
UPDATE workspaces SET default_timezone = %(timezone)s WHERE id = %(id)s;

-- name: archive
UPDATE workspaces SET archived_at = %(now)s WHERE id = %(id)s;

-- name: find_unfinished
-- Archived, with jobs that are not: the process that closed it stopped midway. Relies on jobs_by_status.
SELECT id FROM workspaces
 WHERE archived_at IS NOT NULL
   AND EXISTS (SELECT FROM jobs WHERE jobs.workspace_id = workspaces.id AND jobs.status <> 'archived')
 LIMIT 1;

-- name: load_usage
-- Counts to just past the limit. Runs after the insert of a job, whose foreign key has waited for a transaction that archives the
-- workspace.
SELECT workspaces.archived_at IS NOT NULL AS is_archived,
       (SELECT count(*) FROM (SELECT FROM jobs WHERE jobs.workspace_id = workspaces.id AND status <> 'archived' LIMIT %(most)s) AS counted) AS jobs
  FROM workspaces WHERE id = %(workspace_id)s;

-- name: count_jobs_created
-- Ids begin with the instant of creation. ORDER BY: without it the planner might read the whole workspace to count a few.
SELECT count(*)
  FROM (SELECT id FROM jobs WHERE workspace_id = %(workspace_id)s AND id >= %(first)s AND id < %(past)s ORDER BY id LIMIT %(most)s) AS counted;

-- name: lock_quota
-- NO KEY UPDATE: waits for other transactions that count, not for foreign keys of their inserts.
SELECT id FROM workspaces WHERE id = %(workspace_id)s FOR NO KEY UPDATE;

-- name: list_open_jobs
SELECT id FROM jobs WHERE workspace_id = %(workspace_id)s AND status <> 'archived' ORDER BY id LIMIT %(limit)s;

-- name: stop_timers
UPDATE timers SET due_at = 'infinity', next_at = NULL, version = version + 1
 WHERE job_id = ANY (%(job_ids)s::uuid[]);

-- name: list_leases
SELECT run_id, fence, worker_id FROM leases WHERE workspace_id = %(workspace_id)s AND job_id = ANY (%(job_ids)s::uuid[]);

-- name: count_archived_jobs
-- Reads the index jobs_by_status alone, so a job counts until its purge has ended.
SELECT count(*) FROM (SELECT FROM jobs WHERE workspace_id = %(workspace_id)s AND status = 'archived' LIMIT %(most)s) AS counted;

-- name: count_owned_jobs
SELECT count(*) FROM (SELECT FROM jobs WHERE workspace_id = %(workspace_id)s AND owner_id = %(owner_id)s AND status <> 'archived' LIMIT %(most)s) AS counted;
