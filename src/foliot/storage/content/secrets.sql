-- name: insert
INSERT INTO secrets (workspace_id, id, name, agents, key_id, sealed_value, created_at, updated_at)
VALUES (%(workspace_id)s, %(id)s, %(name)s, %(agents)s, %(key_id)s, %(sealed_value)s, %(now)s, %(now)s)
    ON CONFLICT ON CONSTRAINT secrets_name_is_taken DO NOTHING;

-- name: count
SELECT count(*) FROM secrets WHERE workspace_id = %(workspace_id)s;

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

-- name: set_agents
UPDATE secrets SET agents = %(agents)s, updated_at = %(now)s WHERE workspace_id = %(workspace_id)s AND id = %(id)s;

-- name: delete
DELETE FROM secrets WHERE workspace_id = %(workspace_id)s AND id = %(id)s;

-- name: list_users
SELECT jobs.id, jobs.name
  FROM job_secrets JOIN jobs ON jobs.id = job_secrets.job_id AND jobs.status <> 'archived'
 WHERE job_secrets.workspace_id = %(workspace_id)s AND job_secrets.name = %(name)s AND jobs.id > %(after)s
   AND (%(owner_id)s::uuid IS NULL OR jobs.owner_id = %(owner_id)s)
 ORDER BY jobs.id LIMIT %(limit)s;

-- name: list_other_users
-- Channels, incoming webhooks and rooms that name these secrets.
SELECT secrets.name AS secret, users.kind, users.name
  FROM secrets
 CROSS JOIN LATERAL (
       SELECT 'channel' AS kind, channels.name FROM channels
        WHERE channels.workspace_id = secrets.workspace_id
          AND jsonb_path_exists(channels.config, '$.**.secret ? (@ == $name)', jsonb_build_object('name', secrets.name))
        UNION ALL
       SELECT 'webhook', incoming_webhooks.name FROM incoming_webhooks
        WHERE incoming_webhooks.workspace_id = secrets.workspace_id
          AND secrets.name IN (incoming_webhooks.secret, incoming_webhooks.old_secret)
        UNION ALL
       SELECT 'room', rooms.name FROM webhooks JOIN rooms ON rooms.id = webhooks.room_id
        WHERE webhooks.workspace_id = secrets.workspace_id AND webhooks.secret = secrets.name) AS users
 WHERE secrets.workspace_id = %(workspace_id)s AND secrets.name = ANY (%(names)s)
 ORDER BY secrets.name, users.kind, users.name LIMIT %(limit)s;

-- name: lock_names
-- KEY SHARE: writers of jobs that name a secret do not wait for each other; its deletion waits for them.
SELECT name, agents FROM secrets WHERE workspace_id = %(workspace_id)s AND name = ANY (%(names)s) ORDER BY id FOR KEY SHARE;

-- name: list_names
SELECT name FROM secrets
 WHERE workspace_id = %(workspace_id)s AND (%(agent)s::uuid IS NULL OR %(agent)s = ANY (agents)) ORDER BY name LIMIT %(limit)s;

-- name: unlink
DELETE FROM job_secrets WHERE workspace_id = %(workspace_id)s AND job_id = %(job_id)s AND name <> ALL (%(names)s);

-- name: link
INSERT INTO job_secrets (workspace_id, job_id, name) SELECT %(workspace_id)s, %(job_id)s, unnest(%(names)s::text[])
    ON CONFLICT DO NOTHING;

-- name: load_sealed
SELECT name, workspace_id AS "secret.workspace_id", id AS "secret.id", version AS "secret.version", key_id AS "secret.key_id",
       sealed_value AS "secret.sealed_value"
  FROM secrets WHERE workspace_id = %(workspace_id)s AND name = ANY (%(names)s);

-- name: list_agents
SELECT id FROM principals WHERE workspace_id = %(workspace_id)s AND id = ANY (%(ids)s::uuid[]) AND kind = 'agent';

-- name: count_by_master_key
-- Over all workspaces.
SELECT key_id, count(*) FROM secrets GROUP BY key_id;

-- name: lock_sealed_by_others
-- Over all workspaces, in the order of ids. SKIP LOCKED: a transaction that writes a secret seals it with the current key anyway.
-- Relies on secrets_by_master_key.
SELECT workspace_id, id, version, key_id, sealed_value FROM secrets
 WHERE key_id = ANY (%(others)s::text[]) AND id > %(after)s ORDER BY id LIMIT %(limit)s FOR NO KEY UPDATE SKIP LOCKED;

-- name: reseal_many
UPDATE secrets SET key_id = %(key_id)s, sealed_value = new.sealed_value
  FROM unnest(%(ids)s::uuid[], %(boxes)s::bytea[]) AS new (id, sealed_value) WHERE secrets.id = new.id;

-- name: list_unreadable
SELECT workspaces.slug, secrets.name FROM secrets JOIN workspaces ON workspaces.id = secrets.workspace_id
 WHERE secrets.key_id <> ALL (%(known)s::text[]) ORDER BY workspaces.slug, secrets.name LIMIT %(limit)s;

-- name: delete_all
DELETE FROM secrets WHERE workspace_id = %(workspace_id)s;
