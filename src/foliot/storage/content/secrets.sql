-- name: insert
INSERT INTO secrets (workspace_id, id, name, agents, key_id, sealed_value, created_at, updated_at)
VALUES (%(workspace_id)s, %(id)s, %(name)s, %(agents)s, %(key_id)s, %(sealed_value)s, %(now)s, %(now)s)
    ON CONFLICT ON CONSTRAINT secrets_name_is_taken DO NOTHING;

-- name: counted
SELECT count(*) AS secrets FROM secrets WHERE workspace_id = %(workspace_id)s;

-- name: get
SELECT id, name, version, agents, key_id, created_at, updated_at,
       (SELECT count(*) FROM job_secrets JOIN jobs ON jobs.id = job_secrets.job_id AND jobs.status <> 'archived'
         WHERE job_secrets.workspace_id = secrets.workspace_id AND job_secrets.name = secrets.name) AS users
  FROM secrets WHERE workspace_id = %(workspace_id)s AND id = %(id)s AND (%(agent)s::uuid IS NULL OR %(agent)s = ANY (agents));

-- name: page
SELECT id, name, version, agents, key_id, created_at, updated_at,
       (SELECT count(*) FROM job_secrets JOIN jobs ON jobs.id = job_secrets.job_id AND jobs.status <> 'archived'
         WHERE job_secrets.workspace_id = secrets.workspace_id AND job_secrets.name = secrets.name) AS users
  FROM secrets
 WHERE workspace_id = %(workspace_id)s AND name > %(after)s
   AND (%(name)s::text IS NULL OR name = %(name)s) AND (%(agent)s::uuid IS NULL OR %(agent)s = ANY (agents))
 ORDER BY name LIMIT %(limit)s;

-- name: lock
SELECT id, name, version, agents, key_id, created_at, updated_at, 0::bigint AS users
  FROM secrets WHERE workspace_id = %(workspace_id)s AND id = %(id)s FOR UPDATE;

-- name: reseal
UPDATE secrets SET version = %(version)s, key_id = %(key_id)s, sealed_value = %(sealed_value)s, updated_at = %(now)s
 WHERE workspace_id = %(workspace_id)s AND id = %(id)s;

-- name: give
UPDATE secrets SET agents = %(agents)s, updated_at = %(now)s WHERE workspace_id = %(workspace_id)s AND id = %(id)s;

-- name: delete
DELETE FROM secrets WHERE workspace_id = %(workspace_id)s AND id = %(id)s;

-- name: users
SELECT jobs.id, jobs.name
  FROM job_secrets JOIN jobs ON jobs.id = job_secrets.job_id AND jobs.status <> 'archived'
 WHERE job_secrets.workspace_id = %(workspace_id)s AND job_secrets.name = %(name)s AND jobs.id > %(after)s
   AND (%(owner_id)s::uuid IS NULL OR jobs.owner_id = %(owner_id)s)
 ORDER BY jobs.id LIMIT %(limit)s;

-- name: hold
-- A deletion takes the whole row, and so waits for whoever writes a job that names it.
SELECT name, agents FROM secrets WHERE workspace_id = %(workspace_id)s AND name = ANY (%(names)s) ORDER BY id FOR KEY SHARE;

-- name: names
SELECT name FROM secrets
 WHERE workspace_id = %(workspace_id)s AND (%(agent)s::uuid IS NULL OR %(agent)s = ANY (agents)) ORDER BY name LIMIT %(limit)s;

-- name: unlink
DELETE FROM job_secrets WHERE workspace_id = %(workspace_id)s AND job_id = %(job_id)s AND name <> ALL (%(names)s);

-- name: link
INSERT INTO job_secrets (workspace_id, job_id, name) SELECT %(workspace_id)s, %(job_id)s, unnest(%(names)s::text[])
    ON CONFLICT DO NOTHING;

-- name: sealed
SELECT id, name, version, key_id, sealed_value FROM secrets WHERE workspace_id = %(workspace_id)s AND name = ANY (%(names)s);

-- name: principals
SELECT id FROM principals WHERE workspace_id = %(workspace_id)s AND id = ANY (%(ids)s::uuid[]) AND kind = 'agent';

-- name: by_key
-- Over all workspaces: how many secrets each master key has sealed.
SELECT key_id, count(*) AS secrets FROM secrets GROUP BY key_id;

-- name: under_others
-- Over all workspaces, in the order of their ids. Who writes a secret meanwhile seals it with the present key anyway: nobody waits.
SELECT workspace_id, id, version, key_id, sealed_value FROM secrets
 WHERE key_id = ANY (%(others)s::text[]) AND id > %(after)s ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED;

-- name: reseal_all
UPDATE secrets SET key_id = %(key_id)s, sealed_value = again.sealed_value
  FROM unnest(%(ids)s::uuid[], %(boxes)s::bytea[]) AS again (id, sealed_value) WHERE secrets.id = again.id;

-- name: unreadable
SELECT workspaces.slug, secrets.name FROM secrets JOIN workspaces ON workspaces.id = secrets.workspace_id
 WHERE secrets.key_id <> ALL (%(known)s::text[]) ORDER BY workspaces.slug, secrets.name LIMIT %(limit)s;

-- name: destroy
DELETE FROM secrets WHERE workspace_id = %(workspace_id)s;
