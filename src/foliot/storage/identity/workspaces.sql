-- name: insert_missing
INSERT INTO workspaces (id, slug, name, created_at) VALUES (%(id)s, %(slug)s, %(name)s, %(now)s)
ON CONFLICT ON CONSTRAINT workspaces_slug_is_taken DO NOTHING;

-- name: by_slug
SELECT id, slug, name, default_timezone, settings, created_at, archived_at FROM workspaces WHERE slug = %(slug)s;

-- name: by_id
SELECT id, slug, name, default_timezone, settings, created_at, archived_at FROM workspaces WHERE id = %(id)s;

-- name: slugs
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

-- name: change
UPDATE workspaces SET name = %(name)s, default_timezone = %(default_timezone)s, settings = %(settings)s WHERE id = %(id)s;

-- name: archive
UPDATE workspaces SET archived_at = %(now)s WHERE id = %(id)s;

-- name: unfinished
-- Put away, with jobs that are not: whoever was at it did not come to the end.
SELECT id FROM workspaces
 WHERE archived_at IS NOT NULL
   AND EXISTS (SELECT FROM jobs WHERE jobs.workspace_id = workspaces.id AND jobs.status <> 'archived')
 LIMIT 1;

-- name: room
-- Counting ends just past the limit. Asked after the insert of a job, whose foreign key has waited for whoever archives the workspace.
SELECT workspaces.archived_at,
       (SELECT count(*) FROM (SELECT FROM jobs WHERE jobs.workspace_id = workspaces.id AND status <> 'archived' LIMIT %(most)s) AS counted) AS jobs
  FROM workspaces WHERE id = %(id)s;

-- name: made_between
-- Ids begin with the instant of creation. An ordered walk, or the planner might read the whole workspace to count its end.
SELECT count(*) AS jobs
  FROM (SELECT id FROM jobs WHERE workspace_id = %(id)s AND id >= %(first)s AND id < %(past)s ORDER BY id LIMIT %(most)s) AS counted;

-- name: lock_room
-- Does not wait for the foreign keys of other inserts, only for others who count.
SELECT id FROM workspaces WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: open_jobs
SELECT id FROM jobs WHERE workspace_id = %(workspace_id)s AND status <> 'archived' ORDER BY id LIMIT %(limit)s;

-- name: halt
UPDATE timers SET due_at = 'infinity', next_at = NULL, version = version + 1
 WHERE job_id = ANY (%(job_ids)s::uuid[]);

-- name: leased
SELECT run_id, fence, worker_id FROM leases WHERE workspace_id = %(workspace_id)s AND job_id = ANY (%(job_ids)s::uuid[]);
