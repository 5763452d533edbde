-- name: register
WITH named AS (
    INSERT INTO worker_names (workspace_id, id, name, host, registered_at)
    VALUES (%(workspace_id)s, %(id)s, %(name)s, (SELECT hosts.name FROM hosts WHERE hosts.id = %(host_id)s), %(now)s))
INSERT INTO workers (workspace_id, id, name, queues, types, capacity, started_at, alive_until, version, principal_id, host_id)
VALUES (%(workspace_id)s, %(id)s, %(name)s, %(queues)s, %(types)s, %(capacity)s, %(now)s, %(alive_until)s, %(version)s,
        %(principal_id)s, %(host_id)s);

-- name: load_names
SELECT id, name AS "worker.name", host AS "worker.host" FROM worker_names WHERE id = ANY (%(ids)s);

-- name: forget_names
-- Old ones, except those of live workers.
DELETE FROM worker_names WHERE registered_at < %(before)s AND NOT EXISTS (SELECT FROM workers WHERE workers.id = worker_names.id);

-- name: forget_names_beyond
DELETE FROM worker_names
 WHERE id IN (SELECT id FROM worker_names WHERE workspace_id = %(workspace_id)s ORDER BY registered_at DESC OFFSET %(most)s);

-- name: load_remote
-- Only the principal that registered a worker over HTTP finds it.
SELECT id, name, queues, host_id FROM workers
 WHERE id = %(id)s AND workspace_id = %(workspace_id)s AND principal_id = %(principal_id)s AND alive_until >= %(now)s;

-- name: record_heartbeat
-- A worker whose time is over must not revive under its old id: its runs may be with others.
UPDATE workers SET alive_until = %(alive_until)s, is_draining = %(is_draining)s, running_count = %(running_count)s, heartbeat_at = %(now)s
 WHERE id = %(id)s AND alive_until >= %(now)s;

-- name: leave
DELETE FROM workers WHERE id = %(id)s;

-- name: list_cancel_requests
SELECT run_id, fence FROM leases WHERE worker_id = %(id)s AND cancel_requested_at IS NOT NULL;

-- name: list_lost_leases
SELECT known.run_id, known.fence
  FROM unnest(%(run_ids)s::uuid[], %(fences)s::int[]) AS known (run_id, fence)
 WHERE NOT EXISTS (SELECT FROM leases
                    WHERE leases.run_id = known.run_id AND leases.fence = known.fence AND leases.worker_id = %(id)s);

-- name: remove_silent
-- Heartbeat and removal lock the worker's row, so exactly one of them wins.
WITH silent AS (DELETE FROM workers WHERE alive_until < %(now)s RETURNING *),
     stored AS (INSERT INTO lost_workers (workspace_id, id, name, queues, types, capacity, started_at, heartbeat_at, version)
              SELECT workspace_id, id, name, queues, types, capacity, started_at, COALESCE(heartbeat_at, started_at), version FROM silent)
SELECT id, name FROM silent;

-- name: list_leases
-- After a claim whose commit was not confirmed, these show whether it happened.
SELECT run_id, job_id, fence, worker_id FROM leases WHERE worker_id = %(id)s;

-- name: list_running_attempts
SELECT run_id, fence, attempts AS attempt, leased_at FROM leases WHERE worker_id = %(id)s;

-- name: count_leases
SELECT count(*) FROM leases WHERE worker_id = %(id)s;

-- name: list_unknown_leases
-- Leases that are a while old and that the worker does not name: the response to its claim was lost.
SELECT run_id, job_id, fence, worker_id FROM leases
 WHERE worker_id = %(id)s AND leased_at < %(by)s
   AND (run_id, fence) NOT IN (SELECT * FROM unnest(%(run_ids)s::uuid[], %(fences)s::int[]));

-- name: list_ignored_cancels
-- Runs with a cancel request whose worker, though alive, has not reported an end.
SELECT run_id, job_id, fence, worker_id FROM leases WHERE cancel_requested_at < %(by)s LIMIT %(limit)s;

-- name: count_alive
-- Workers that serve queues; those of hosts do not.
SELECT count(*) FROM workers WHERE alive_until >= %(now)s AND host_id IS NULL;
