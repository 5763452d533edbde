-- name: list_overdue_workspaces
-- Relies on timers_due: a scheduler that works leaves no due timer behind, so this reads nothing as a rule.
SELECT DISTINCT workspace_id
  FROM (SELECT workspace_id FROM timers WHERE due_at < %(by)s AND status IN ('active', 'pending') ORDER BY due_at LIMIT %(limit)s) AS overdue
 UNION
SELECT DISTINCT workspace_id
  FROM (SELECT ready.workspace_id
          FROM ready
         WHERE ready.available_at < %(by)s AND ready.target IS NULL
           AND NOT EXISTS (SELECT FROM workers
                            WHERE workers.alive_until > %(now)s AND (workers.workspace_id IS NULL OR workers.workspace_id = ready.workspace_id)
                              AND (ready.queue = ANY (workers.queues) OR '*' = ANY (workers.queues)) AND ready.type = ANY (workers.types))
         LIMIT %(limit)s) AS unserved;

-- name: count_overdue
SELECT count(*) FROM (SELECT FROM timers WHERE due_at < %(by)s AND status IN ('active', 'pending') LIMIT %(limit)s) AS overdue;

-- name: list_open_queues
SELECT subject FROM incidents WHERE workspace_id = %(workspace_id)s AND closed_at IS NULL AND subject LIKE 'queue:%%';

-- name: list_workspaces_with_open_queues
-- Few: only queues without a worker. Reads the partial index of open incidents.
SELECT DISTINCT workspace_id FROM incidents WHERE closed_at IS NULL AND remind_at IS NOT NULL LIMIT %(limit)s;

-- name: insert_missed
-- One notice for each overdue job without an open incident. A notice that waits counts as one: this runs again before it is processed.
INSERT INTO notices (workspace_id, event, at, job_id, facts)
SELECT timers.workspace_id, 'missed', %(now)s, timers.job_id,
       jsonb_build_object('planned_for', timers.due_at, 'missed', 1)
  FROM timers
 WHERE timers.workspace_id = %(workspace_id)s AND timers.due_at < %(by)s AND timers.status = 'active'
   AND NOT EXISTS (SELECT FROM incidents WHERE incidents.workspace_id = %(workspace_id)s AND incidents.closed_at IS NULL
                                           AND incidents.subject = 'job:' || timers.job_id::text)
   AND NOT EXISTS (SELECT FROM notices WHERE notices.workspace_id = %(workspace_id)s AND notices.job_id = timers.job_id AND notices.event = 'missed')
 ORDER BY timers.due_at
 LIMIT %(limit)s;

-- name: mark_overdue
-- Their next success closes the incident. SKIP LOCKED: a scheduler that hangs may hold some; they are marked later.
UPDATE timers SET has_incident = true
 WHERE job_id IN (SELECT job_id FROM timers
                   WHERE workspace_id = %(workspace_id)s AND due_at < %(by)s AND status = 'active' AND NOT has_incident
                   ORDER BY job_id LIMIT %(limit)s FOR UPDATE SKIP LOCKED);

-- name: list_unserved
SELECT ready.queue, ready.type, count(*) AS runs, min(ready.available_at) AS since
  FROM ready
 WHERE ready.workspace_id = %(workspace_id)s AND ready.available_at < %(by)s AND ready.target IS NULL
   AND NOT EXISTS (SELECT FROM workers
                    WHERE workers.alive_until > %(now)s AND (workers.workspace_id IS NULL OR workers.workspace_id = ready.workspace_id)
                      AND (ready.queue = ANY (workers.queues) OR '*' = ANY (workers.queues)) AND ready.type = ANY (workers.types))
 GROUP BY ready.queue, ready.type
 ORDER BY ready.queue, ready.type
 LIMIT %(limit)s;

-- name: list_waiting_queues
SELECT DISTINCT facts ->> 'subject' FROM notices WHERE workspace_id = %(workspace_id)s AND event = 'no_worker';
