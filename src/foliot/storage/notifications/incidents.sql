-- name: lock_open
-- In the order of ids, as everywhere. After the notices: their order decides which notifier comes first.
SELECT id, subject, job_id, event, fingerprint, error, failures, missed, first_run_id, last_run_id, opened_at, last_at, closed_at, closed_by,
       messages, reminders, remind_at, acknowledged_at, acknowledged_by, muted_at, muted_by, snoozed_until, note
  FROM incidents
 WHERE workspace_id = %(workspace_id)s AND closed_at IS NULL AND subject = ANY (%(subjects)s)
 ORDER BY id
   FOR UPDATE;

-- name: lock_to_remind
-- Relies on incidents_to_remind.
SELECT id, subject, job_id, event, fingerprint, error, failures, missed, first_run_id, last_run_id, opened_at, last_at, closed_at, closed_by,
       messages, reminders, remind_at, acknowledged_at, acknowledged_by, muted_at, muted_by, snoozed_until, note
  FROM incidents
 WHERE id IN (SELECT id FROM incidents
               WHERE workspace_id = %(workspace_id)s AND closed_at IS NULL AND remind_at <= %(now)s ORDER BY remind_at LIMIT %(limit)s)
   AND closed_at IS NULL AND remind_at <= %(now)s
 ORDER BY id
   FOR UPDATE;

-- name: lock
SELECT id, subject, job_id, event, fingerprint, error, failures, missed, first_run_id, last_run_id, opened_at, last_at, closed_at, closed_by,
       messages, reminders, remind_at, acknowledged_at, acknowledged_by, muted_at, muted_by, snoozed_until, note
  FROM incidents WHERE id = %(id)s FOR UPDATE;

-- name: insert
INSERT INTO incidents (workspace_id, id, subject, job_id, event, fingerprint, error, failures, missed, first_run_id, last_run_id, opened_at,
                       last_at, closed_at, closed_by, messages, reminders, remind_at)
SELECT %(workspace_id)s, id, subject, job_id, event, fingerprint, error, failures, missed, first_run_id, last_run_id, opened_at,
       last_at, closed_at, closed_by, messages, reminders, remind_at
  FROM unnest(%(ids)s::uuid[], %(subjects)s::text[], %(job_ids)s::uuid[], %(events)s::text[], %(fingerprints)s::text[],
              %(errors)s::jsonb[], %(failures)s::int[], %(missed)s::bigint[], %(first_run_ids)s::uuid[], %(last_run_ids)s::uuid[],
              %(opened_ats)s::timestamptz[], %(last_ats)s::timestamptz[], %(closed_ats)s::timestamptz[], %(closed_bys)s::text[],
              %(messages)s::int[], %(reminders)s::int[], %(remind_ats)s::timestamptz[])
       AS new (id, subject, job_id, event, fingerprint, error, failures, missed, first_run_id, last_run_id, opened_at, last_at,
               closed_at, closed_by, messages, reminders, remind_at);

-- name: update
UPDATE incidents
   SET fingerprint = new.fingerprint, error = new.error, failures = new.failures, missed = new.missed, last_run_id = new.last_run_id,
       last_at = new.last_at, closed_at = new.closed_at, closed_by = new.closed_by, messages = new.messages, reminders = new.reminders,
       remind_at = new.remind_at
  FROM unnest(%(ids)s::uuid[], %(fingerprints)s::text[], %(errors)s::jsonb[], %(failures)s::int[], %(missed)s::bigint[],
              %(last_run_ids)s::uuid[], %(last_ats)s::timestamptz[], %(closed_ats)s::timestamptz[], %(closed_bys)s::text[],
              %(messages)s::int[], %(reminders)s::int[], %(remind_ats)s::timestamptz[])
       AS new (id, fingerprint, error, failures, missed, last_run_id, last_at, closed_at, closed_by, messages, reminders, remind_at)
 WHERE incidents.id = new.id;

-- name: insert_events
-- For listeners of the workspace, in the transaction that changes the incidents.
INSERT INTO events (workspace_id, at, kind, object_id, job_id, actor)
SELECT watches.workspace_id, %(now)s, new.kind, new.id::text, new.job_id, %(actor)s
  FROM unnest(%(kinds)s::text[], %(ids)s::uuid[], %(job_ids)s::uuid[]) AS new (kind, id, job_id)
  JOIN watches ON watches.workspace_id = %(workspace_id)s AND watches.until > %(now)s;

-- name: set_attention
-- What people decide about an incident.
UPDATE incidents
   SET acknowledged_at = %(acknowledged_at)s, acknowledged_by = %(acknowledged_by)s, muted_at = %(muted_at)s, muted_by = %(muted_by)s,
       snoozed_until = %(snoozed_until)s, note = %(note)s, remind_at = %(remind_at)s, closed_at = %(closed_at)s, closed_by = %(closed_by)s
 WHERE id = %(id)s;

-- name: load_threads
SELECT incident_id, channel_id, recipients FROM incident_threads WHERE incident_id = ANY (%(ids)s);

-- name: count_skipped
-- Planned times that did not run since the incidents opened, for reasons that nobody chose. Relies on runs_newest_of_a_job; a time that was
-- planned shortly before, which opened the incident, is recorded after it.
SELECT incidents.id AS incident_id, sum(CASE WHEN runs.planned_until IS NULL THEN 1 ELSE COALESCE(runs.count, 1) END)::bigint AS skipped
  FROM incidents
  JOIN runs ON runs.job_id = incidents.job_id AND runs.planned_for > incidents.opened_at - interval '1 day' AND runs.created_at >= incidents.opened_at
 WHERE incidents.id = ANY (%(ids)s) AND runs.status = 'skipped'
   AND runs.skip_reason IN ('misfire', 'paused', 'deadline', 'host_offline', 'dependency_failed', 'dependency_missing', 'type_disabled', 'scheduler_error')
 GROUP BY incidents.id;

-- name: load_last_messages
-- Relies on incident_threads_of_a_subject.
SELECT subject, channel_id, max(last_at) AS last_at
  FROM incident_threads
 WHERE workspace_id = %(workspace_id)s AND subject = ANY (%(subjects)s)
 GROUP BY subject, channel_id;

-- name: insert_threads
INSERT INTO incident_threads (workspace_id, incident_id, channel_id, subject, recipients, last_at)
SELECT %(workspace_id)s, incident_id, channel_id, subject, ARRAY(SELECT jsonb_array_elements_text(recipients)), %(now)s
  FROM unnest(%(incident_ids)s::uuid[], %(channel_ids)s::uuid[], %(subjects)s::text[], %(recipients)s::jsonb[])
       AS new (incident_id, channel_id, subject, recipients)
    ON CONFLICT (incident_id, channel_id) DO NOTHING;

-- name: touch_threads
UPDATE incident_threads SET last_at = %(now)s
  FROM unnest(%(incident_ids)s::uuid[], %(channel_ids)s::uuid[]) AS informed (incident_id, channel_id)
 WHERE incident_threads.incident_id = informed.incident_id AND incident_threads.channel_id = informed.channel_id;

-- name: set_thread
UPDATE incident_threads SET thread = %(thread)s WHERE incident_id = %(incident_id)s AND channel_id = %(channel_id)s AND thread IS NULL;

-- name: page
SELECT incidents.id, subject, incidents.job_id, event, fingerprint, error, failures, missed, first_run_id, last_run_id, opened_at, last_at,
       closed_at, closed_by, messages, reminders, remind_at, acknowledged_at, acknowledged_by, muted_at, muted_by, snoozed_until, note
  FROM incidents
 WHERE incidents.workspace_id = %(workspace_id)s AND incidents.id < %(before)s
   AND CASE %(state)s WHEN 'open' THEN closed_at IS NULL WHEN 'closed' THEN closed_at IS NOT NULL ELSE true END
   AND (%(job_id)s::uuid IS NULL OR job_id = %(job_id)s)
   AND (%(owner_id)s::uuid IS NULL OR EXISTS (SELECT FROM jobs WHERE jobs.id = incidents.job_id AND jobs.owner_id = %(owner_id)s))
 ORDER BY incidents.id DESC LIMIT %(limit)s;

-- name: prune
-- The engine may delete incidents and not lock them: two janitors that find the same rows delete them once.
DELETE FROM incidents WHERE id IN (SELECT id FROM incidents WHERE closed_at < %(before)s ORDER BY closed_at LIMIT %(limit)s);
