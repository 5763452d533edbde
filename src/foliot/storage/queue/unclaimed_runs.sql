-- Runs that wait, that expire, or that no worker has: reads only. `run_queue.sql` writes.

-- name: next_in_turn
-- The oldest run of each job that waits for its turn; where the job is stopped, the oldest that a person requested.
SELECT next.*
  FROM unnest(%(job_ids)s::uuid[], %(manual_only)s::boolean[]) AS job (id, manual_only)
 CROSS JOIN LATERAL (
       SELECT run_id, job_id, available_at, expires_at, trigger, waits_for FROM waiting
        WHERE waiting.job_id = job.id AND waits_for = 'turn' AND (NOT job.manual_only OR trigger <> 'schedule')
        ORDER BY position LIMIT 1) AS next;

-- name: at_gate
SELECT run_id, job_id, available_at, expires_at, trigger, waits_for FROM waiting
 WHERE job_id = ANY (%(job_ids)s) AND waits_for = 'upstream'
 ORDER BY position;

-- name: still_waiting
SELECT run_id, job_id, available_at, expires_at, trigger, waits_for FROM waiting
 WHERE run_id = ANY (%(run_ids)s) AND waits_for = %(waits_for)s
 ORDER BY position;

-- name: with_open_window
SELECT run_id, job_id FROM waiting WHERE waits_for = 'window' AND available_at <= %(now)s ORDER BY available_at LIMIT %(limit)s;

-- name: at_settled_gates
-- Runs at a gate with no live upstream: the upstream ended, or the edge was removed, in a transaction that did not judge the gate again.
SELECT waiting.run_id, waiting.job_id
  FROM waiting
 WHERE waits_for = 'upstream'
   AND NOT EXISTS (SELECT FROM dependencies JOIN timers ON timers.job_id = dependencies.upstream_id
                    WHERE dependencies.job_id = waiting.job_id AND dependencies.mode = 'gate' AND timers.live + timers.waiting > 0)
 LIMIT %(limit)s;

-- name: in_turn
SELECT run_id, job_id, available_at, expires_at, trigger, waits_for
  FROM waiting WHERE job_id = %(job_id)s AND waits_for = 'turn' ORDER BY position;

-- name: unclaimed_of_job
-- `ready` is searched by the queue or target of the job, which its rows always match; it needs no index by job.
SELECT run_id, trigger FROM ready
 WHERE ((target IS NULL AND queue = %(queue)s AND workspace_id = %(workspace_id)s) OR (target = %(target)s AND workspace_id = %(workspace_id)s))
   AND job_id = %(job_id)s
UNION ALL
SELECT run_id, trigger FROM waiting WHERE job_id = %(job_id)s;

-- name: leased_of_job
SELECT run_id FROM leases WHERE job_id = %(job_id)s;

-- name: expired
-- Unclaimed runs whose start deadline or window has passed. Those that wait for a check-in fail: see incoming_webhooks.list_unreported.
(SELECT run_id, job_id FROM ready WHERE expires_at <= %(now)s AND type <> 'check_in' ORDER BY expires_at LIMIT %(limit)s)
UNION ALL
(SELECT run_id, job_id FROM waiting WHERE expires_at <= %(now)s ORDER BY expires_at LIMIT %(limit)s);

-- name: still_expired
SELECT run_id, job_id, workspace_id, expires_at, trigger, attempts, NULL::text AS waits_for, target FROM ready WHERE run_id = ANY (%(run_ids)s) AND expires_at <= %(now)s
 UNION ALL
SELECT run_id, job_id, workspace_id, expires_at, trigger, attempts, waits_for, NULL AS target FROM waiting WHERE run_id = ANY (%(run_ids)s) AND expires_at <= %(now)s;
