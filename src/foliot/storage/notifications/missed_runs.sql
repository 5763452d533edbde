-- name: list_overdue_workspaces
-- Relies on timers_due: a scheduler that works leaves no due timer behind, so this reads nothing as a rule. DISTINCT before the limit: a
-- workspace with thousands of overdue jobs must not hide the others.
SELECT DISTINCT workspace_id FROM timers WHERE due_at < %(by)s AND status IN ('active', 'pending')
 UNION
SELECT workspace_id
  FROM (SELECT DISTINCT workspace_id, queue, type FROM ready WHERE available_at < %(by)s AND target IS NULL AND type <> 'check_in') AS ready
 WHERE NOT EXISTS (SELECT FROM workers
                    WHERE workers.alive_until > %(now)s AND (workers.workspace_id IS NULL OR workers.workspace_id = ready.workspace_id)
                      AND (ready.queue = ANY (workers.queues) OR '*' = ANY (workers.queues)) AND ready.type = ANY (workers.types))
 LIMIT %(limit)s;

-- name: count_overdue
SELECT count(*) FROM (SELECT FROM timers WHERE due_at < %(by)s AND status IN ('active', 'pending') LIMIT %(limit)s) AS overdue;

-- name: list_open_queues
SELECT subject FROM incidents WHERE workspace_id = %(workspace_id)s AND closed_at IS NULL AND subject LIKE 'queue:%%';

-- name: list_workspaces_with_open_queues
-- Acknowledged ones too, which have no reminder. Reads the partial index incidents_one_open_per_subject.
SELECT DISTINCT workspace_id FROM incidents WHERE closed_at IS NULL LIMIT %(limit)s;

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
 WHERE ready.workspace_id = %(workspace_id)s AND ready.available_at < %(by)s AND ready.target IS NULL AND ready.type <> 'check_in'
   AND NOT EXISTS (SELECT FROM workers
                    WHERE workers.alive_until > %(now)s AND (workers.workspace_id IS NULL OR workers.workspace_id = ready.workspace_id)
                      AND (ready.queue = ANY (workers.queues) OR '*' = ANY (workers.queues)) AND ready.type = ANY (workers.types))
 GROUP BY ready.queue, ready.type
 ORDER BY ready.queue, ready.type
 LIMIT %(limit)s;

-- name: list_waiting_queues
SELECT DISTINCT facts ->> 'subject' FROM notices WHERE workspace_id = %(workspace_id)s AND event = 'no_worker';

-- name: insert_scheduler_error
-- Under the lock of the timer: its next success closes the incident.
WITH marked AS (UPDATE timers SET has_incident = true WHERE job_id = %(job_id)s),
     audited AS (
         INSERT INTO audit (workspace_id, id, at, actor, action, object_kind, object_id, after)
         VALUES (%(workspace_id)s, %(id)s, %(now)s, 'engine', 'job.not_planned', 'job', %(job_id)s::uuid::text, jsonb_build_object('reason', %(reason)s::text)))
INSERT INTO notices (workspace_id, event, at, job_id, facts)
VALUES (%(workspace_id)s, 'missed', %(now)s, %(job_id)s, jsonb_build_object('missed', 1, 'reason', %(reason)s::text));

-- name: list_workspaces_with_open_runs
-- Runs that may be late, slow or stuck, and incidents about such runs that may be over. The tables hold open runs only.
SELECT DISTINCT workspace_id FROM ready WHERE available_at < %(late)s
 UNION
SELECT DISTINCT workspace_id FROM waiting WHERE available_at < %(stuck)s AND waits_for IN ('turn', 'upstream', 'limit', 'type')
 UNION
SELECT DISTINCT workspace_id FROM leases WHERE leased_at < %(slow)s
 UNION
SELECT DISTINCT workspace_id FROM incidents WHERE closed_at IS NULL
 LIMIT %(limit)s;

-- name: list_late
-- Served by a live worker and not started; one that no worker serves is `no_worker`. Backfills wait by design.
SELECT DISTINCT ON (ready.job_id) 'late' AS event, ready.job_id, ready.run_id, ready.available_at AS since, NULL::text AS waits_for, NULL::float8 AS usual
  FROM ready
 WHERE ready.workspace_id = %(workspace_id)s AND ready.available_at < %(late)s AND ready.type <> 'check_in' AND ready.trigger <> 'backfill'
   AND EXISTS (SELECT FROM workers
                WHERE workers.alive_until > %(now)s AND (workers.workspace_id IS NULL OR workers.workspace_id = ready.workspace_id)
                  AND (ready.queue = ANY (workers.queues) OR '*' = ANY (workers.queues)) AND ready.type = ANY (workers.types))
 ORDER BY ready.job_id, ready.available_at
 LIMIT %(limit)s;

-- name: list_stuck
-- Waits for hours for another run, a limit or its type; or reported progress and has stopped doing so. A freeze and a window have their end.
SELECT DISTINCT ON (job_id) 'stuck' AS event, job_id, run_id, since, waits_for, NULL::float8 AS usual
  FROM (SELECT job_id, run_id, available_at AS since, waits_for FROM waiting
         WHERE workspace_id = %(workspace_id)s AND available_at < %(stuck)s AND waits_for IN ('turn', 'upstream', 'limit', 'type')
           AND trigger <> 'backfill'
         UNION ALL
        SELECT job_id, run_id, (progress ->> 'at')::timestamptz, NULL FROM leases
         WHERE workspace_id = %(workspace_id)s AND progress IS NOT NULL AND (progress ->> 'at')::timestamptz < %(silent)s) AS found
 ORDER BY job_id, since
 LIMIT %(limit)s;

-- name: list_slow
-- Compared with the days of the last month that the roll-up has added up: at least ten runs, without those that failed at once.
SELECT DISTINCT ON (leases.job_id) 'slow' AS event, leases.job_id, leases.run_id, leases.leased_at AS since, NULL::text AS waits_for, known.usual
  FROM leases
 CROSS JOIN LATERAL (SELECT sum(seconds) / NULLIF(sum(runs), 0) AS usual, sum(successes) AS successes FROM job_days
                      WHERE job_days.job_id = leases.job_id AND job_days.day >= (%(now)s::timestamptz - interval '30 days')::date) AS known
 WHERE leases.workspace_id = %(workspace_id)s AND leases.leased_at < %(slow)s AND leases.type <> 'check_in'
   AND known.successes >= 10 AND extract(epoch FROM %(now)s::timestamptz - leases.leased_at) > %(times)s * known.usual
 ORDER BY leases.job_id, leases.leased_at
 LIMIT %(limit)s;

-- name: list_open_run_troubles
SELECT subject FROM incidents
 WHERE workspace_id = %(workspace_id)s AND closed_at IS NULL AND split_part(subject, ':', 1) IN ('late', 'slow', 'stuck')
 UNION
SELECT facts ->> 'subject' FROM notices WHERE workspace_id = %(workspace_id)s AND event IN ('late', 'slow', 'stuck');

-- name: insert_expiring
-- One notice for each end. Jobs: relies on jobs_with_an_end; texts of instants in UTC sort like the instants. Keys that live for a week or less
-- are meant to end: sessions of the console are such keys.
WITH coming AS (
    SELECT workspace_id, 'job:' || id AS subject, id AS job_id, (definition #>> '{spec,end_at}')::timestamptz AS ends_at, NULL::text AS name,
           'Its last planned time lies before its end_at.' AS reason
      FROM jobs
     WHERE workspace_id = %(workspace_id)s AND status = 'active' AND definition #>> '{spec,end_at}' IS NOT NULL
       AND definition #>> '{spec,end_at}' BETWEEN %(from_text)s AND %(until_text)s
     UNION ALL
    SELECT workspace_id, 'key:' || id, NULL, expires_at, 'key ' || name, 'Requests with it are refused from then on.'
      FROM api_keys
     WHERE workspace_id = %(workspace_id)s AND revoked_at IS NULL AND expires_at BETWEEN %(now)s AND %(until)s AND expires_at - created_at > %(within)s),
written AS (
    INSERT INTO expiry_notices (workspace_id, subject, ends_at)
    SELECT workspace_id, subject, ends_at FROM coming ORDER BY ends_at LIMIT %(limit)s
        ON CONFLICT DO NOTHING
 RETURNING subject, ends_at)
INSERT INTO notices (workspace_id, event, at, job_id, facts)
SELECT coming.workspace_id, 'expiring', %(now)s, coming.job_id,
       jsonb_strip_nulls(jsonb_build_object('name', coming.name, 'subject', CASE WHEN coming.job_id IS NULL THEN coming.subject END,
                                            'ends_at', coming.ends_at, 'reason', coming.reason))
  FROM coming JOIN written USING (subject, ends_at);

-- name: forget_expiries
DELETE FROM expiry_notices WHERE workspace_id = %(workspace_id)s AND ends_at < %(now)s;

-- name: list_workspaces_after
SELECT id FROM workspaces WHERE archived_at IS NULL AND id > %(after)s ORDER BY id LIMIT %(limit)s;
