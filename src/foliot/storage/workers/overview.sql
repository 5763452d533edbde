-- name: list_workers
-- Workers that may serve this workspace. Row-level security limits the counted runs to the workspace.
SELECT workers.id, workers.name, workers.queues, workers.types, workers.capacity, workers.started_at, workers.version,
       COALESCE(workers.heartbeat_at, workers.started_at) AS heartbeat_at, workers.is_draining, workers.alive_until >= %(now)s AS is_alive,
       (SELECT hosts.name FROM hosts WHERE hosts.id = workers.host_id) AS host,
       (SELECT count(*) FROM leases WHERE leases.worker_id = workers.id
           AND (%(owner_id)s::uuid IS NULL OR EXISTS (SELECT FROM jobs WHERE jobs.id = leases.job_id AND owner_id = %(owner_id)s))) AS running
  FROM workers
 UNION ALL
SELECT id, name, queues, types, capacity, started_at, version, heartbeat_at, false, false, NULL, 0 FROM lost_workers WHERE heartbeat_at >= %(lost_since)s
 ORDER BY is_alive DESC, heartbeat_at DESC, id
 LIMIT %(limit)s;

-- name: list_leases
-- Running attempts of a workspace, the next deadline first. A lease lasts as long as its worker renews it.
SELECT leases.run_id, leases.job_id, jobs.name AS job, leases.attempts AS attempt, leases.fence, leases.worker_id, names.name AS worker,
       names.host, leases.leased_at, workers.alive_until AS expires_at, leases.deadline_at,
       (workers.alive_until IS NULL OR workers.alive_until < %(now)s OR leases.deadline_at < %(now)s) AS is_overdue,
       GREATEST(%(now)s - LEAST(workers.alive_until, leases.deadline_at), '0') AS overdue_for
  FROM leases
  JOIN jobs ON jobs.id = leases.job_id
  LEFT JOIN workers ON workers.id = leases.worker_id
  LEFT JOIN worker_names AS names ON names.id = leases.worker_id
 WHERE leases.workspace_id = %(workspace_id)s
   AND (%(owner_id)s::uuid IS NULL OR jobs.owner_id = %(owner_id)s)
   AND (NOT %(overdue)s OR workers.alive_until IS NULL OR workers.alive_until < %(now)s OR leases.deadline_at < %(now)s)
 ORDER BY leases.deadline_at, leases.run_id
 LIMIT %(limit)s;

-- name: list_queues
-- `queues` hops from one name to the next along jobs_by_queue: DISTINCT would read every job of the workspace.
WITH RECURSIVE unfinished AS (
    SELECT queue, 'ready' AS state, job_id, available_at FROM ready WHERE workspace_id = %(workspace_id)s
     UNION ALL
    SELECT queue, 'waiting', job_id, NULL FROM waiting WHERE workspace_id = %(workspace_id)s
     UNION ALL
    SELECT queue, 'running', job_id, NULL FROM leases WHERE workspace_id = %(workspace_id)s),
counted AS (
    SELECT queue, count(*) FILTER (WHERE state = 'ready') AS ready, count(*) FILTER (WHERE state = 'waiting') AS waiting,
           count(*) FILTER (WHERE state = 'running') AS running, min(available_at) FILTER (WHERE available_at <= %(now)s) AS oldest
      FROM unfinished
     WHERE %(owner_id)s::uuid IS NULL OR EXISTS (SELECT FROM jobs WHERE jobs.id = unfinished.job_id AND owner_id = %(owner_id)s)
     GROUP BY queue),
queues AS (
    (SELECT queue FROM jobs WHERE workspace_id = %(workspace_id)s ORDER BY queue LIMIT 1)
     UNION ALL
    SELECT (SELECT jobs.queue FROM jobs WHERE workspace_id = %(workspace_id)s AND jobs.queue > queues.queue ORDER BY jobs.queue LIMIT 1)
      FROM queues WHERE queues.queue IS NOT NULL),
named AS (
    SELECT queue FROM counted
     UNION SELECT unnest(queues) FROM workers WHERE alive_until >= %(now)s
     UNION SELECT queues.queue FROM queues
            CROSS JOIN LATERAL (SELECT FROM jobs WHERE workspace_id = %(workspace_id)s AND jobs.queue = queues.queue AND status <> 'archived'
                                   AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s) LIMIT 1) AS one
            WHERE queues.queue IS NOT NULL)
SELECT named.queue AS name, COALESCE(ready, 0) AS ready, COALESCE(waiting, 0) AS waiting, COALESCE(running, 0) AS running, oldest,
       (SELECT count(*) FROM workers WHERE (named.queue = ANY (workers.queues) OR '*' = ANY (workers.queues)) AND alive_until >= %(now)s AND NOT is_draining) AS workers
  FROM named LEFT JOIN counted USING (queue)
 ORDER BY named.queue
 LIMIT %(limit)s;

-- name: count_by_type
SELECT type, count(*)
  FROM (SELECT unnest(types) AS type FROM workers WHERE alive_until >= %(now)s AND NOT is_draining) AS known
 GROUP BY type;

-- name: prune_lost
DELETE FROM lost_workers WHERE heartbeat_at < %(before)s;

-- name: unserved
-- Runs with a target wait for its host alone, whichever workers serve the queue.
SELECT groups.*
  FROM (SELECT queue, type, target, count(*) AS runs, min(available_at) AS since FROM ready
         WHERE workspace_id = %(workspace_id)s AND available_at <= %(by)s
           AND NOT EXISTS (SELECT FROM disabled_types
                            WHERE disabled_types.workspace_id = ready.workspace_id AND disabled_types.type = ready.type)
         GROUP BY queue, type, target) AS groups
 WHERE NOT EXISTS (SELECT FROM workers
                    WHERE groups.type = ANY (workers.types)
                      AND CASE WHEN groups.target IS NULL THEN workers.queues && ARRAY[groups.queue, '*']
                               ELSE workers.host_id = (SELECT id FROM hosts WHERE workspace_id = %(workspace_id)s
                                                          AND 'host/' || name = groups.target
                                                        UNION ALL
                                                       SELECT host_id FROM server_instances WHERE workspace_id = %(workspace_id)s
                                                          AND 'server/' || name = groups.target) END
                      AND workers.alive_until >= %(now)s AND NOT workers.is_draining
                      AND (workers.workspace_id IS NULL OR workers.workspace_id = %(workspace_id)s))
 ORDER BY since, queue, type
 LIMIT %(limit)s;

-- name: list_shares
-- Of every workspace with open runs. At most `most` ready runs are read: a flood must not make this page slow as well.
WITH waiting_now AS (
    SELECT workspace_id, count(*) AS ready, min(available_at) AS oldest
      FROM (SELECT workspace_id, available_at FROM ready WHERE available_at <= %(now)s LIMIT %(most)s) AS counted
     GROUP BY workspace_id),
running_now AS (SELECT workspace_id, count(*) AS running FROM leases GROUP BY workspace_id),
held_now AS (
    SELECT workspace_id, count(*) AS held FROM (SELECT workspace_id FROM waiting WHERE waits_for = 'limit' LIMIT %(most)s) AS counted
     GROUP BY workspace_id)
SELECT workspaces.id, workspaces.slug, workspaces.name, COALESCE(waiting_now.ready, 0) AS ready, waiting_now.oldest,
       COALESCE(running_now.running, 0) AS running, COALESCE(held_now.held, 0) AS held,
       (SELECT cap FROM limits WHERE limits.workspace_id = workspaces.id AND limits.key = '') AS cap
  FROM workspaces
  LEFT JOIN waiting_now ON waiting_now.workspace_id = workspaces.id
  LEFT JOIN running_now ON running_now.workspace_id = workspaces.id
  LEFT JOIN held_now ON held_now.workspace_id = workspaces.id
 WHERE waiting_now.ready > 0 OR running_now.running > 0 OR held_now.held > 0
 ORDER BY waiting_now.oldest NULLS LAST, running_now.running DESC NULLS LAST, workspaces.slug
 LIMIT %(limit)s;
