-- name: register
-- A host registers again under its name and may send new labels; its limits are set by people. xmax is 0 for an inserted row.
INSERT INTO hosts (workspace_id, id, name, labels, principal_id, version, created_at, updated_at, last_seen_at, alive_until)
VALUES (%(workspace_id)s, %(id)s, %(name)s, %(labels)s, %(principal_id)s, %(version)s, %(now)s, %(now)s, %(now)s, %(alive_until)s)
    ON CONFLICT ON CONSTRAINT hosts_name_is_taken DO UPDATE
   SET labels = COALESCE(%(new_labels)s, hosts.labels), version = EXCLUDED.version, last_seen_at = EXCLUDED.last_seen_at,
       alive_until = GREATEST(hosts.alive_until, EXCLUDED.alive_until)
 WHERE hosts.principal_id = EXCLUDED.principal_id
RETURNING id, (xmax = 0) AS is_new;

-- name: record_heartbeat
-- GREATEST: a late heartbeat must not move the times back.
UPDATE hosts SET last_seen_at = GREATEST(hosts.last_seen_at, %(now)s), alive_until = GREATEST(hosts.alive_until, %(alive_until)s)
  FROM workers WHERE workers.id = %(worker_id)s AND hosts.id = workers.host_id;

-- name: record_sign_off
-- Unless another worker of the same host is alive.
UPDATE hosts SET last_seen_at = GREATEST(last_seen_at, %(now)s), alive_until = %(now)s
 WHERE id = %(id)s AND NOT EXISTS (SELECT FROM workers WHERE host_id = %(id)s AND alive_until >= %(now)s);

-- name: lock_capacity
-- Claims for one host take turns, so that its free capacity is still true when they write leases. Leases are counted by a statement
-- of its own: this one may wait for the lock, and would count with a snapshot from before.
SELECT max_mutations AS mutations, max_reads AS reads FROM hosts WHERE id = %(id)s FOR NO KEY UPDATE;

-- name: count_leases
-- Relies on leases_of_a_host.
SELECT count(*) FILTER (WHERE NOT read_only) AS mutations, count(*) FILTER (WHERE read_only) AS reads FROM leases WHERE host_id = %(id)s;

-- name: lock_ready_runs
-- Runs for this host or for an instance that it has now: first mutations, then reads, each up to its capacity. SKIP LOCKED: rival
-- claims do not wait for each other. Relies on ready_for_a_target.
SELECT mine.run_id, mine.workspace_id AS "permit.workspace_id", mine.concurrency_key AS "permit.concurrency_key",
       EXISTS (SELECT FROM disabled_types
                WHERE disabled_types.workspace_id = mine.workspace_id AND disabled_types.type = mine.type) AS "permit.is_off"
  FROM (VALUES (false, %(mutations)s::int), (true, %(reads)s::int)) AS slots (read_only, free)
 CROSS JOIN LATERAL (
       SELECT run_id, workspace_id, concurrency_key, type FROM ready
        WHERE workspace_id = %(workspace_id)s
          AND target = ANY (ARRAY(SELECT 'host/' || name FROM hosts WHERE id = %(id)s
                                   UNION ALL SELECT 'server/' || name FROM server_instances WHERE host_id = %(id)s))
          AND ready.read_only = slots.read_only AND available_at <= %(now)s AND type = ANY (%(types)s)
          AND (expires_at IS NULL OR expires_at > %(now)s)
        ORDER BY priority, available_at, position
        LIMIT slots.free
          FOR UPDATE SKIP LOCKED) AS mine
 LIMIT %(most)s;

-- name: find_next_start
SELECT min(available_at) FROM ready
 WHERE workspace_id = %(workspace_id)s AND available_at > %(now)s
   AND target = ANY (ARRAY(SELECT 'host/' || name FROM hosts WHERE id = %(id)s
                            UNION ALL SELECT 'server/' || name FROM server_instances WHERE host_id = %(id)s));

-- name: get
SELECT hosts.id, hosts.name, hosts.labels, hosts.max_mutations, hosts.max_reads, hosts.version, hosts.revision, hosts.created_at, hosts.updated_at,
       hosts.last_seen_at AS "sighting.last_seen_at", hosts.alive_until AS "sighting.alive_until",
       (SELECT count(*) FROM leases WHERE leases.host_id = hosts.id) AS running,
       ARRAY(SELECT DISTINCT type FROM workers CROSS JOIN unnest(types) AS type
              WHERE workers.host_id = hosts.id AND alive_until >= %(now)s ORDER BY type) AS types
  FROM hosts WHERE id = %(id)s;

-- name: lock
SELECT hosts.id, hosts.name, hosts.labels, hosts.max_mutations, hosts.max_reads, hosts.version, hosts.revision, hosts.created_at, hosts.updated_at,
       hosts.last_seen_at AS "sighting.last_seen_at", hosts.alive_until AS "sighting.alive_until",
       0::bigint AS running, '{}'::text[] AS types FROM hosts WHERE id = %(id)s FOR UPDATE;

-- name: page
SELECT hosts.id, hosts.name, hosts.labels, hosts.max_mutations, hosts.max_reads, hosts.version, hosts.revision, hosts.created_at, hosts.updated_at,
       hosts.last_seen_at AS "sighting.last_seen_at", hosts.alive_until AS "sighting.alive_until",
       (SELECT count(*) FROM leases WHERE leases.host_id = hosts.id) AS running,
       ARRAY(SELECT DISTINCT type FROM workers CROSS JOIN unnest(types) AS type
              WHERE workers.host_id = hosts.id AND alive_until >= %(now)s ORDER BY type) AS types
  FROM hosts WHERE (name, id) > (%(name)s, %(after)s) ORDER BY name, id LIMIT %(limit)s;

-- name: update
UPDATE hosts SET labels = %(labels)s, max_mutations = %(max_mutations)s, max_reads = %(max_reads)s, revision = revision + 1, updated_at = %(now)s
 WHERE id = %(id)s;

-- name: delete
DELETE FROM hosts WHERE id = %(id)s;

-- name: list_instances
SELECT id, host_id, name, labels, created_at, updated_at FROM server_instances WHERE host_id = ANY (%(host_ids)s) ORDER BY name;

-- name: lock_instance
SELECT id, host_id, name, labels, created_at, updated_at FROM server_instances WHERE id = %(id)s AND host_id = %(host_id)s FOR UPDATE;

-- name: find_held_by_others
-- Instances on live hosts of other principals: while those are alive, only people may move them.
SELECT server_instances.name, hosts.name AS host
  FROM server_instances JOIN hosts ON hosts.id = server_instances.host_id
 WHERE server_instances.workspace_id = %(workspace_id)s AND server_instances.name = ANY (%(names)s)
   AND hosts.principal_id <> %(principal_id)s AND hosts.alive_until > %(now)s
 ORDER BY server_instances.name LIMIT 1;

-- name: put_instance
-- A host that registers an instance of another host takes it over.
WITH before AS (SELECT host_id FROM server_instances WHERE workspace_id = %(workspace_id)s AND name = %(name)s)
INSERT INTO server_instances (workspace_id, id, host_id, name, labels, created_at, updated_at)
VALUES (%(workspace_id)s, %(id)s, %(host_id)s, %(name)s, %(labels)s, %(now)s, %(now)s)
    ON CONFLICT ON CONSTRAINT server_instances_name_is_taken DO UPDATE SET host_id = EXCLUDED.host_id, updated_at = EXCLUDED.updated_at
 WHERE server_instances.host_id <> EXCLUDED.host_id
RETURNING id, (SELECT host_id FROM before) AS previous_host_id;

-- name: insert_instance
INSERT INTO server_instances (workspace_id, id, host_id, name, labels, created_at, updated_at)
VALUES (%(workspace_id)s, %(id)s, %(host_id)s, %(name)s, %(labels)s, %(now)s, %(now)s)
    ON CONFLICT ON CONSTRAINT server_instances_name_is_taken DO NOTHING;

-- name: update_instance
UPDATE server_instances SET host_id = %(host_id)s, labels = %(labels)s, updated_at = %(now)s WHERE id = %(id)s;

-- name: delete_instance
DELETE FROM server_instances WHERE id = %(id)s;

-- name: resolve
-- An instance resolves to the host that has it now.
SELECT hosts.id, hosts.name, hosts.last_seen_at AS "sighting.last_seen_at", hosts.alive_until AS "sighting.alive_until" FROM hosts
 WHERE hosts.workspace_id = %(workspace_id)s
   AND hosts.id = (SELECT id FROM hosts WHERE %(kind)s = 'host' AND workspace_id = %(workspace_id)s AND name = %(name)s
                    UNION ALL SELECT host_id FROM server_instances
                               WHERE %(kind)s = 'server' AND workspace_id = %(workspace_id)s AND name = %(name)s);

-- name: list_names
SELECT name FROM hosts WHERE %(kind)s = 'host' AND workspace_id = %(workspace_id)s
 UNION ALL SELECT name FROM server_instances WHERE %(kind)s = 'server' AND workspace_id = %(workspace_id)s
 ORDER BY name LIMIT 200;

-- name: count
SELECT (SELECT count(*) FROM hosts WHERE workspace_id = %(workspace_id)s) AS hosts,
       (SELECT count(*) FROM server_instances WHERE workspace_id = %(workspace_id)s) AS servers;

-- name: list_unseen
-- Hosts of all workspaces without a heartbeat for long that no job and no ready run names. Relies on jobs_with_a_target.
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

-- name: list_bound_jobs
-- Relies on jobs_with_a_target.
SELECT id, name FROM jobs
 WHERE workspace_id = %(workspace_id)s AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s)
   AND definition -> 'spec' ? 'target' AND status <> 'archived' AND purged_at IS NULL
   AND definition -> 'spec' -> 'target' ->> 'kind' = %(kind)s AND definition -> 'spec' -> 'target' ->> 'name' = ANY (%(names)s)
 ORDER BY name LIMIT %(limit)s;
