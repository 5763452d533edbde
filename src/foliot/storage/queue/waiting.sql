-- name: next_in_line
-- The oldest run of each job that waits for its turn; where a job is stopped, the oldest that somebody asked for.
SELECT next.*
  FROM unnest(%(job_ids)s::uuid[], %(by_hand)s::boolean[]) AS job (id, by_hand)
 CROSS JOIN LATERAL (
       SELECT run_id, job_id, available_at, expires_at, trigger, waits_for FROM waiting
        WHERE waiting.job_id = job.id AND waits_for = 'turn' AND (NOT job.by_hand OR trigger <> 'schedule')
        ORDER BY position LIMIT 1) AS next;

-- name: at_the_gate
SELECT run_id, job_id, available_at, expires_at, trigger, waits_for FROM waiting
 WHERE job_id = ANY (%(job_ids)s) AND waits_for = 'upstream'
 ORDER BY position;

-- name: still
SELECT run_id, job_id, available_at, expires_at, trigger, waits_for FROM waiting
 WHERE run_id = ANY (%(run_ids)s) AND waits_for = %(waits_for)s
 ORDER BY position;

-- name: waiting_until
SELECT run_id, job_id FROM waiting WHERE waits_for = 'window' AND available_at <= %(now)s ORDER BY available_at LIMIT %(limit)s;

-- name: at_open_gates
-- Runs at a gate none of whose upstreams will end: they ended, or the edge is gone, in a transaction that did not answer them.
SELECT waiting.run_id, waiting.job_id
  FROM waiting
 WHERE waits_for = 'upstream'
   AND NOT EXISTS (SELECT FROM dependencies JOIN timers ON timers.job_id = dependencies.upstream_id
                    WHERE dependencies.job_id = waiting.job_id AND dependencies.mode = 'gate' AND timers.live + timers.waiting > 0)
 LIMIT %(limit)s;

-- name: promote
WITH next AS (SELECT * FROM unnest(%(run_ids)s::uuid[], %(available_at)s::timestamptz[], %(expires_at)s::timestamptz[])
                       AS next (run_id, available_at, expires_at)),
gone AS (DELETE FROM waiting USING next WHERE waiting.run_id = next.run_id
      RETURNING waiting.*, next.available_at AS from_at, next.expires_at AS until_at)
INSERT INTO ready (workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive, concurrency_key, target, read_only,
                   timeout, expires_at, trigger, fence, attempts, retries, losses, started_at, last_error)
SELECT workspace_id, run_id, job_id, queue, type, priority, from_at, planned_for, exclusive, concurrency_key, target, read_only, timeout,
       until_at, trigger, fence, attempts, retries, losses, started_at, last_error
  FROM gone;

-- name: hold
UPDATE waiting SET waits_for = %(waits_for)s WHERE run_id = ANY (%(run_ids)s);

-- name: hold_until
UPDATE waiting SET waits_for = %(waits_for)s, expires_at = %(until)s WHERE run_id = %(run_id)s;

-- name: put_off
UPDATE waiting SET waits_for = 'window', available_at = %(at)s, expires_at = %(until)s WHERE run_id = %(run_id)s;

-- name: hold_ready
-- Out of `ready`, into the line. The delete is the lock: one that a worker claims at this moment is not among them.
WITH gone AS (DELETE FROM ready WHERE run_id = ANY (%(run_ids)s) RETURNING *)
INSERT INTO waiting (workspace_id, run_id, job_id, waits_for, queue, type, priority, available_at, planned_for, exclusive, concurrency_key,
                     target, read_only, timeout, expires_at, trigger, fence, attempts, retries, losses, started_at, last_error)
SELECT workspace_id, run_id, job_id, %(waits_for)s, queue, type, priority, available_at, planned_for, exclusive, concurrency_key, target, read_only,
       timeout, expires_at, trigger, fence, attempts, retries, losses, started_at, last_error
  FROM gone ORDER BY priority, available_at, position;
