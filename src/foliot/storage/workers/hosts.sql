-- name: register
-- The same host comes again under its name, with its labels as it tells them; limits are for people to set.
INSERT INTO hosts (workspace_id, id, name, labels, principal_id, version, created_at, updated_at, last_seen_at, alive_until)
VALUES (%(workspace_id)s, %(id)s, %(name)s, %(labels)s, %(principal_id)s, %(version)s, %(now)s, %(now)s, %(now)s, %(alive_until)s)
    ON CONFLICT ON CONSTRAINT hosts_name_is_taken DO UPDATE
   SET labels = COALESCE(%(told_labels)s, hosts.labels), version = EXCLUDED.version, last_seen_at = EXCLUDED.last_seen_at,
       alive_until = GREATEST(hosts.alive_until, EXCLUDED.alive_until)
 WHERE hosts.principal_id = EXCLUDED.principal_id
RETURNING id, (xmax = 0) AS is_new;

-- name: seen
-- Never back: an answer that was long under way does not make a host look gone.
UPDATE hosts SET last_seen_at = GREATEST(hosts.last_seen_at, %(now)s), alive_until = GREATEST(hosts.alive_until, %(alive_until)s)
  FROM workers WHERE workers.id = %(worker_id)s AND hosts.id = workers.host_id;

-- name: left
-- Unless another process of the same host is still there.
UPDATE hosts SET last_seen_at = GREATEST(last_seen_at, %(now)s), alive_until = %(now)s
 WHERE id = %(id)s AND NOT EXISTS (SELECT FROM workers WHERE host_id = %(id)s AND alive_until >= %(now)s);

-- name: lock
-- Whoever claims for a host holds this, so that what its leases leave room for is still true when the next are written. Counting them is
-- a statement of its own: this one may have waited, and what it sees beside the row is from before.
SELECT max_mutations, max_reads FROM hosts WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: leased
SELECT count(*) FILTER (WHERE NOT read_only) AS mutations, count(*) FILTER (WHERE read_only) AS reads FROM leases WHERE host_id = %(id)s;

-- name: ask
-- What is meant for this host, or for an instance that it has now: first those that change something, then those that only look.
SELECT mine.run_id, mine.workspace_id, mine.concurrency_key,
       EXISTS (SELECT FROM disabled_types WHERE disabled_types.workspace_id = mine.workspace_id AND disabled_types.type = mine.type) AS is_off
  FROM (VALUES (false, %(mutations)s::int), (true, %(reads)s::int)) AS lane (read_only, room)
 CROSS JOIN LATERAL (
       SELECT run_id, workspace_id, concurrency_key, type FROM ready
        WHERE workspace_id = %(workspace_id)s
          AND target = ANY (ARRAY(SELECT 'host/' || name FROM hosts WHERE id = %(id)s
                                   UNION ALL SELECT 'server/' || name FROM server_instances WHERE host_id = %(id)s))
          AND ready.read_only = lane.read_only AND available_at <= %(now)s AND type = ANY (%(types)s)
          AND (expires_at IS NULL OR expires_at > %(now)s)
        ORDER BY priority, available_at, position
        LIMIT lane.room
          FOR UPDATE SKIP LOCKED) AS mine
 LIMIT %(most)s;

-- name: next_at
-- When the next of what is meant for this host may start.
SELECT min(available_at) AS next_at FROM ready
 WHERE workspace_id = %(workspace_id)s AND available_at > %(now)s
   AND target = ANY (ARRAY(SELECT 'host/' || name FROM hosts WHERE id = %(id)s
                            UNION ALL SELECT 'server/' || name FROM server_instances WHERE host_id = %(id)s));

-- name: get
SELECT hosts.*, (SELECT count(*) FROM leases WHERE leases.host_id = hosts.id) AS running,
       ARRAY(SELECT DISTINCT type FROM workers CROSS JOIN unnest(types) AS type
              WHERE workers.host_id = hosts.id AND alive_until >= %(now)s ORDER BY type) AS types
  FROM hosts WHERE id = %(id)s;

-- name: lock_whole
SELECT hosts.*, 0::bigint AS running, '{}'::text[] AS types FROM hosts WHERE id = %(id)s FOR UPDATE;

-- name: page
SELECT hosts.*, (SELECT count(*) FROM leases WHERE leases.host_id = hosts.id) AS running,
       ARRAY(SELECT DISTINCT type FROM workers CROSS JOIN unnest(types) AS type
              WHERE workers.host_id = hosts.id AND alive_until >= %(now)s ORDER BY type) AS types
  FROM hosts WHERE (name, id) > (%(name)s, %(after)s) ORDER BY name, id LIMIT %(limit)s;

-- name: change
UPDATE hosts SET labels = %(labels)s, max_mutations = %(max_mutations)s, max_reads = %(max_reads)s, revision = revision + 1, updated_at = %(now)s
 WHERE id = %(id)s;

-- name: delete
DELETE FROM hosts WHERE id = %(id)s;

-- name: instances
SELECT id, host_id, name, labels, created_at, updated_at FROM server_instances WHERE host_id = ANY (%(host_ids)s) ORDER BY name;

-- name: instance
SELECT id, host_id, name, labels, created_at, updated_at FROM server_instances WHERE id = %(id)s AND host_id = %(host_id)s FOR UPDATE;

-- name: held_by_others
-- Instances of hosts that are here and belong to somebody else: who they are, only people may change while that is so.
SELECT server_instances.name, hosts.name AS host
  FROM server_instances JOIN hosts ON hosts.id = server_instances.host_id
 WHERE server_instances.workspace_id = %(workspace_id)s AND server_instances.name = ANY (%(names)s)
   AND hosts.principal_id <> %(principal_id)s AND hosts.alive_until > %(now)s
 ORDER BY server_instances.name LIMIT 1;

-- name: put_instance
-- What a host says it has, it has: one that was elsewhere has moved. `was` tells where it was before.
WITH before AS (SELECT host_id FROM server_instances WHERE workspace_id = %(workspace_id)s AND name = %(name)s)
INSERT INTO server_instances (workspace_id, id, host_id, name, labels, created_at, updated_at)
VALUES (%(workspace_id)s, %(id)s, %(host_id)s, %(name)s, %(labels)s, %(now)s, %(now)s)
    ON CONFLICT ON CONSTRAINT server_instances_name_is_taken DO UPDATE SET host_id = EXCLUDED.host_id, updated_at = EXCLUDED.updated_at
 WHERE server_instances.host_id <> EXCLUDED.host_id
RETURNING id, (SELECT host_id FROM before) AS was;

-- name: insert_instance
INSERT INTO server_instances (workspace_id, id, host_id, name, labels, created_at, updated_at)
VALUES (%(workspace_id)s, %(id)s, %(host_id)s, %(name)s, %(labels)s, %(now)s, %(now)s)
    ON CONFLICT ON CONSTRAINT server_instances_name_is_taken DO NOTHING;

-- name: change_instance
UPDATE server_instances SET host_id = %(host_id)s, labels = %(labels)s, updated_at = %(now)s WHERE id = %(id)s;

-- name: delete_instance
DELETE FROM server_instances WHERE id = %(id)s;

-- name: resolve
-- The host that a target means now.
SELECT hosts.id, hosts.name, hosts.last_seen_at, hosts.alive_until FROM hosts
 WHERE hosts.workspace_id = %(workspace_id)s
   AND hosts.id = (SELECT id FROM hosts WHERE %(kind)s = 'host' AND workspace_id = %(workspace_id)s AND name = %(name)s
                    UNION ALL SELECT host_id FROM server_instances
                               WHERE %(kind)s = 'server' AND workspace_id = %(workspace_id)s AND name = %(name)s);

-- name: names
SELECT name FROM hosts WHERE %(kind)s = 'host' AND workspace_id = %(workspace_id)s
 UNION ALL SELECT name FROM server_instances WHERE %(kind)s = 'server' AND workspace_id = %(workspace_id)s
 ORDER BY name LIMIT 200;

-- name: count
SELECT (SELECT count(*) FROM hosts WHERE workspace_id = %(workspace_id)s) AS hosts,
       (SELECT count(*) FROM server_instances WHERE workspace_id = %(workspace_id)s) AS servers;

-- name: unseen
-- Hosts of all workspaces that nobody has heard of for long, and that no job and no run that is ready waits for.
SELECT hosts.workspace_id, hosts.id
  FROM hosts
 CROSS JOIN LATERAL (
       SELECT array_agg(target) AS known_as
         FROM (SELECT 'host/' || hosts.name
                UNION ALL SELECT 'server/' || name FROM server_instances WHERE host_id = hosts.id) AS known (target)) AS names
 WHERE last_seen_at < %(before)s AND alive_until < %(before)s
   AND NOT EXISTS (SELECT FROM jobs
                    WHERE jobs.workspace_id = hosts.workspace_id AND definition -> 'spec' ? 'target'
                      AND status <> 'archived' AND purged_at IS NULL
                      AND (definition -> 'spec' -> 'target' ->> 'kind') || '/' || (definition -> 'spec' -> 'target' ->> 'name')
                          = ANY (known_as))
   AND NOT EXISTS (SELECT FROM ready WHERE ready.workspace_id = hosts.workspace_id AND target = ANY (known_as))
 ORDER BY last_seen_at LIMIT %(limit)s;

-- name: jobs_bound
-- Jobs that must run there.
SELECT id, name FROM jobs
 WHERE workspace_id = %(workspace_id)s AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s)
   AND definition -> 'spec' ? 'target' AND status <> 'archived' AND purged_at IS NULL
   AND definition -> 'spec' -> 'target' ->> 'kind' = %(kind)s AND definition -> 'spec' -> 'target' ->> 'name' = ANY (%(names)s)
 ORDER BY name LIMIT %(limit)s;
