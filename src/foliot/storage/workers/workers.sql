-- name: register
WITH named AS (
    INSERT INTO worker_names (workspace_id, id, name, host, registered_at)
    VALUES (%(workspace_id)s, %(id)s, %(name)s, (SELECT hosts.name FROM hosts WHERE hosts.id = %(host_id)s), %(now)s))
INSERT INTO workers (workspace_id, id, name, queues, types, capacity, started_at, alive_until, version, principal_id, host_id)
VALUES (%(workspace_id)s, %(id)s, %(name)s, %(queues)s, %(types)s, %(capacity)s, %(now)s, %(alive_until)s, %(version)s,
        %(principal_id)s, %(host_id)s);

-- name: names
SELECT id, name, host FROM worker_names WHERE id = ANY (%(ids)s);

-- name: forget_names
-- Those of long ago, but for who is still alive.
DELETE FROM worker_names WHERE registered_at < %(before)s AND NOT EXISTS (SELECT FROM workers WHERE workers.id = worker_names.id);

-- name: forget_names_beyond
DELETE FROM worker_names
 WHERE id IN (SELECT id FROM worker_names WHERE workspace_id = %(workspace_id)s ORDER BY registered_at DESC OFFSET %(most)s);

-- name: remote
-- A worker that speaks HTTP, to whoever registered it; to anybody else it is not there.
SELECT id, name, queues, host_id FROM workers
 WHERE id = %(id)s AND workspace_id = %(workspace_id)s AND principal_id = %(principal_id)s AND alive_until >= %(now)s;

-- name: beat
-- A worker that was already given up for lost must not come back to life under its old id: its runs have gone to others.
UPDATE workers SET alive_until = %(alive_until)s, is_draining = %(is_draining)s, running_count = %(running_count)s, heartbeat_at = %(now)s
 WHERE id = %(id)s AND alive_until >= %(now)s;

-- name: leave
DELETE FROM workers WHERE id = %(id)s;

-- name: cancels
SELECT run_id, fence FROM leases WHERE worker_id = %(id)s AND cancel_requested_at IS NOT NULL;

-- name: gone
SELECT known.run_id, known.fence
  FROM unnest(%(run_ids)s::uuid[], %(fences)s::int[]) AS known (run_id, fence)
 WHERE NOT EXISTS (SELECT FROM leases
                    WHERE leases.run_id = known.run_id AND leases.fence = known.fence AND leases.worker_id = %(id)s);

-- name: strike_off
-- Heartbeat and strike-off meet on the worker's own row, so exactly one of them wins.
WITH silent AS (DELETE FROM workers WHERE alive_until < %(now)s RETURNING *),
     kept AS (INSERT INTO lost_workers (workspace_id, id, name, queues, types, capacity, started_at, heartbeat_at, version)
              SELECT workspace_id, id, name, queues, types, capacity, started_at, COALESCE(heartbeat_at, started_at), version FROM silent)
SELECT id, name FROM silent;

-- name: held
-- What a worker holds by the books: after a claim whose commit nobody confirmed, this tells what became of it.
SELECT run_id, job_id, fence, worker_id FROM leases WHERE worker_id = %(id)s;

-- name: unheard_of
-- What it holds by the books for a while, and does not name among what it works on: the answer to its claim was lost on the way.
SELECT run_id, job_id, fence, worker_id FROM leases
 WHERE worker_id = %(id)s AND leased_at < %(by)s
   AND (run_id, fence) NOT IN (SELECT * FROM unnest(%(run_ids)s::uuid[], %(fences)s::int[]));

-- name: ignored_cancels
-- Runs that were asked to stop and whose worker, though alive, has not said that they did.
SELECT run_id, job_id, fence, worker_id FROM leases WHERE cancel_requested_at < %(by)s LIMIT %(limit)s;

-- name: count_alive
-- Those that serve queues; a host does what is meant for it alone.
SELECT count(*) AS alive FROM workers WHERE alive_until >= %(now)s AND host_id IS NULL;
