-- name: of_job
-- `ready` is found by the queue or the target of its job, which every row there follows; it has no index by job, and needs none.
SELECT run_id FROM ready
 WHERE ((target IS NULL AND queue = %(queue)s AND workspace_id = %(workspace_id)s) OR (target = %(target)s AND workspace_id = %(workspace_id)s))
   AND job_id = %(job_id)s
UNION ALL
SELECT run_id FROM waiting WHERE job_id = %(job_id)s;

-- name: redirect
WITH readied AS (
    UPDATE ready
       SET queue = %(new_queue)s, type = %(type)s, priority = %(priority)s, timeout = %(timeout)s, concurrency_key = %(concurrency_key)s,
           target = %(new_target)s, read_only = %(read_only)s
     WHERE ((target IS NULL AND queue = %(queue)s AND workspace_id = %(workspace_id)s) OR (target = %(target)s AND workspace_id = %(workspace_id)s))
       AND job_id = %(job_id)s)
UPDATE waiting
   SET queue = %(new_queue)s, type = %(type)s, priority = %(priority)s, timeout = %(timeout)s, concurrency_key = %(concurrency_key)s,
       target = %(new_target)s, read_only = %(read_only)s
 WHERE job_id = %(job_id)s;

-- name: hold_back
-- Scheduled runs that no worker has go back in line, before those that wait for their turn already: they were ahead of them. Gate,
-- window, freeze and caps are asked again when their turn comes; the end of a gate's patience goes with the gate.
WITH gone AS (
    DELETE FROM ready
     WHERE ((target IS NULL AND queue = %(queue)s AND workspace_id = %(workspace_id)s) OR (target = %(target)s AND workspace_id = %(workspace_id)s))
       AND job_id = %(job_id)s AND trigger = 'schedule'
 RETURNING *),
stopped AS (
    DELETE FROM waiting
     WHERE job_id = %(job_id)s AND trigger = 'schedule' AND waits_for <> 'turn'
 RETURNING *),
held AS (
    SELECT workspace_id, run_id, job_id, position, queue, type, priority, available_at, planned_for, exclusive, concurrency_key,
           target, read_only, timeout, expires_at, trigger, fence, attempts, retries, losses, started_at, last_error FROM gone
     UNION ALL
    SELECT workspace_id, run_id, job_id, position, queue, type, priority, available_at, planned_for, exclusive, concurrency_key,
           target, read_only, timeout, CASE WHEN waits_for = 'upstream' THEN available_at + %(deadline)s ELSE expires_at END, trigger, fence,
           attempts, retries, losses, started_at, last_error FROM stopped),
line AS (SELECT COALESCE(min(position), 1) AS head FROM waiting WHERE job_id = %(job_id)s)
INSERT INTO waiting (workspace_id, run_id, job_id, waits_for, position, queue, type, priority, available_at, planned_for, exclusive,
                     concurrency_key, target, read_only, timeout, expires_at, trigger, fence, attempts, retries, losses, started_at, last_error)
OVERRIDING SYSTEM VALUE
SELECT workspace_id, run_id, job_id, 'turn', line.head - row_number() OVER (ORDER BY planned_for DESC, held.position DESC), queue, type,
       priority, available_at, planned_for, exclusive, concurrency_key, target, read_only, timeout, expires_at, trigger, fence, attempts, retries,
       losses, started_at, last_error
  FROM held CROSS JOIN line
RETURNING run_id;

-- name: put_back
-- Attempts that are to be repeated though their jobs are stopped: each goes before all that wait in the line of its job.
WITH gone AS (DELETE FROM ready WHERE run_id = ANY (%(run_ids)s) RETURNING *)
INSERT INTO waiting (workspace_id, run_id, job_id, waits_for, position, queue, type, priority, available_at, planned_for, exclusive,
                     concurrency_key, target, read_only, timeout, expires_at, trigger, fence, attempts, retries, losses, started_at, last_error)
OVERRIDING SYSTEM VALUE
SELECT workspace_id, run_id, job_id, 'turn',
       COALESCE((SELECT min(waiting.position) FROM waiting WHERE waiting.job_id = gone.job_id), 1)
           - row_number() OVER (PARTITION BY job_id ORDER BY planned_for DESC, gone.position DESC),
       queue, type, priority, available_at, planned_for, exclusive, concurrency_key, target, read_only, timeout, expires_at, trigger, fence,
       attempts, retries, losses, started_at, last_error
  FROM gone;

-- name: in_line
SELECT run_id, job_id, available_at, expires_at, trigger, waits_for
  FROM waiting WHERE job_id = %(job_id)s AND waits_for = 'turn' ORDER BY position;

-- name: leased
SELECT run_id FROM leases WHERE job_id = %(job_id)s;
