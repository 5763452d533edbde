-- name: insert
-- One statement writes the job and its revision, here and below: no definition is in force without its record.
WITH made AS (
    INSERT INTO jobs (workspace_id, id, name, type, queue, tags, owner_id, definition, status, status_reason, status_by, status_at,
                      created_by, created_at, updated_at)
    VALUES (%(workspace_id)s, %(id)s, %(name)s, %(type)s, %(queue)s, %(tags)s, %(owner_id)s, %(definition)s, %(status)s,
            %(status_reason)s, %(by)s, %(now)s, %(by)s, %(now)s, %(now)s)
    RETURNING workspace_id, id, revision, schedule_rev, definition)
INSERT INTO revisions (workspace_id, job_id, revision, schedule_rev, at, actor, definition)
SELECT workspace_id, id, revision, schedule_rev, %(now)s, %(by)s, definition FROM made;

-- name: get
SELECT {columns} FROM jobs JOIN timers ON timers.job_id = jobs.id WHERE jobs.id = %(id)s;

-- name: load_revision
SELECT jobs.revision FROM jobs JOIN timers ON timers.job_id = jobs.id
 WHERE jobs.id = %(id)s AND (%(owner_id)s::uuid IS NULL OR jobs.owner_id = %(owner_id)s);

-- name: change_status
-- Writes both copies of the status: people filter jobs by it, the engine reads it in timers. Listeners get an event for changes by
-- the engine; changes by people get theirs from the audit. Stops, resumes and archiving are notices; a stop by the engine is audited here. `old` reads
-- the statement's snapshot, so it has the status before.
WITH new AS (SELECT * FROM unnest(%(job_ids)s::uuid[], %(statuses)s::text[], %(reasons)s::text[], %(facts)s::jsonb[], %(audit_ids)s::uuid[])
                         AS new (job_id, status, reason, facts, audit_id)),
     old AS (SELECT jobs.id, jobs.status FROM jobs JOIN new ON jobs.id = new.job_id),
     timed AS (UPDATE timers SET status = new.status FROM new WHERE timers.job_id = new.job_id),
     moved AS (UPDATE jobs
                  SET status = new.status, status_reason = new.reason, status_by = %(by)s, status_at = %(now)s, paused_until = NULL
                 FROM new WHERE jobs.id = new.job_id
            RETURNING jobs.workspace_id, jobs.id, jobs.status, jobs.status_reason, new.facts, new.audit_id),
     noticed AS (
         INSERT INTO notices (workspace_id, event, at, job_id, facts)
         SELECT moved.workspace_id, named.event, %(now)s, moved.id,
                jsonb_build_object('reason', moved.status_reason, 'by', %(by)s::text, 'status', moved.status) || moved.facts
           FROM moved JOIN old USING (id)
          CROSS JOIN LATERAL (SELECT CASE WHEN %(by)s = %(engine)s AND moved.status IN ('paused', 'failed') THEN 'job_auto_paused'
                                          WHEN moved.status IN ('paused', 'disabled') THEN 'job_paused'
                                          WHEN moved.status IN ('active', 'pending') AND old.status IN ('paused', 'disabled', 'failed') THEN 'job_resumed'
                                          WHEN moved.status = 'archived' THEN 'job_archived'
                                          END) AS named (event)
          WHERE named.event IS NOT NULL AND old.status <> moved.status),
     audited AS (
         INSERT INTO audit (workspace_id, id, at, actor, action, object_kind, object_id, before, after)
         SELECT moved.workspace_id, moved.audit_id, %(now)s, %(by)s, 'job.auto_' || moved.status, 'job', moved.id::text,
                jsonb_build_object('status', old.status), jsonb_build_object('reason', moved.status_reason)
           FROM moved JOIN old USING (id)
          WHERE %(by)s = %(engine)s AND moved.status IN ('paused', 'failed') AND old.status <> moved.status)
INSERT INTO events (workspace_id, at, kind, job_id, actor)
SELECT moved.workspace_id, %(now)s, 'job.' || CASE moved.status WHEN 'active' THEN 'activated' ELSE moved.status END, moved.id, %(by)s
  FROM moved JOIN watches ON watches.workspace_id = moved.workspace_id AND watches.until > %(now)s
 WHERE %(by)s = %(engine)s;

-- name: redefine
WITH made AS (
    UPDATE jobs SET definition = %(definition)s, revision = revision + 1, updated_at = %(now)s WHERE id = %(id)s
    RETURNING workspace_id, id, revision, schedule_rev, definition),
noticed AS (
    INSERT INTO notices (workspace_id, event, at, job_id, facts)
    SELECT workspace_id, 'job_changed', %(now)s, id, jsonb_build_object('by', %(by)s::text, 'reason', 'Revision ' || revision || COALESCE(': ' || %(note)s::text, '') || '.')
      FROM made)
INSERT INTO revisions (workspace_id, job_id, revision, schedule_rev, at, actor, note, definition)
SELECT workspace_id, id, revision, schedule_rev, %(now)s, %(by)s, %(note)s, definition FROM made;

-- name: load_definition
SELECT definition FROM jobs WHERE id = %(id)s AND purged_at IS NULL;

-- name: lock_name_in_app
-- Two workers that load one app at the same time must not both create its jobs.
SELECT pg_advisory_xact_lock(hashtextextended('foliot.app:' || %(workspace_id)s::uuid || ':' || %(app)s || ':' || %(name)s, 0));

-- name: is_in_app
SELECT EXISTS (SELECT FROM jobs
                WHERE workspace_id = %(workspace_id)s AND name = %(name)s AND status <> 'archived'
                  AND definition -> 'external_ref' ->> 'source' = 'code' AND definition -> 'external_ref' ->> 'app' = %(app)s);

-- name: load_owner
SELECT owner_id FROM jobs WHERE id = %(id)s;

-- name: list_owned
SELECT id FROM jobs WHERE id = ANY (%(ids)s) AND owner_id = %(owner_id)s;

-- name: edit
WITH made AS (
    UPDATE jobs
       SET name = %(name)s, type = %(type)s, queue = %(queue)s, tags = %(tags)s, owner_id = %(owner_id)s, definition = %(definition)s,
           revision = %(revision)s, schedule_rev = %(schedule_rev)s, updated_at = %(now)s
     WHERE id = %(id)s
    RETURNING workspace_id, id, revision, schedule_rev, definition),
noticed AS (
    INSERT INTO notices (workspace_id, event, at, job_id, facts)
    SELECT workspace_id, 'job_changed', %(now)s, id, jsonb_build_object('by', %(by)s::text, 'reason', 'Revision ' || revision || COALESCE(': ' || %(note)s::text, '') || '.')
      FROM made)
INSERT INTO revisions (workspace_id, job_id, revision, schedule_rev, at, actor, note, definition)
SELECT workspace_id, id, revision, schedule_rev, %(now)s, %(by)s, %(note)s, definition FROM made;

-- name: set_paused_until
UPDATE jobs SET paused_until = %(until)s WHERE id = ANY (%(ids)s);

-- name: list_pauses
SELECT id AS job_id, paused_until AS until, status_reason AS reason FROM jobs WHERE id = ANY (%(ids)s) AND status = 'paused';

-- name: change_pauses
-- `status_at` stays: the jobs are paused since then.
UPDATE jobs SET paused_until = %(until)s, status_reason = COALESCE(%(reason)s, status_reason), status_by = %(by)s
 WHERE id = ANY (%(ids)s) AND status = 'paused';

-- name: list_due_to_resume
-- Relies on jobs_paused_until.
SELECT workspace_id, id FROM jobs WHERE paused_until <= %(now)s ORDER BY paused_until LIMIT %(limit)s;

-- name: mark_purged
-- Without its timer the job neither fires nor appears in a query.
WITH timer AS (DELETE FROM timers WHERE job_id = %(id)s),
     edges AS (DELETE FROM dependencies WHERE job_id = %(id)s),
     calendars AS (DELETE FROM job_calendars WHERE job_id = %(id)s),
     noticed AS (INSERT INTO notices (workspace_id, event, at, job_id) SELECT workspace_id, 'job_archived', %(now)s, id FROM jobs WHERE id = %(id)s)
UPDATE jobs SET status = 'archived', purged_at = %(now)s, paused_until = NULL WHERE id = %(id)s;

-- name: lock_next_purged
-- SKIP LOCKED: no row means that nothing is left, or that another node works on it. Relies on jobs_to_purge.
SELECT id FROM jobs WHERE purged_at IS NOT NULL ORDER BY purged_at LIMIT 1 FOR UPDATE SKIP LOCKED;

-- name: purge_history
WITH doomed AS MATERIALIZED (SELECT id FROM runs WHERE job_id = %(id)s LIMIT %(most)s),
     gone AS (DELETE FROM runs USING doomed WHERE runs.id = doomed.id RETURNING runs.id),
     tries AS (DELETE FROM attempts USING doomed WHERE attempts.run_id = doomed.id),
     used AS (DELETE FROM run_usage USING doomed WHERE run_usage.run_id = doomed.id),
     lines AS (DELETE FROM log_chunks USING doomed WHERE log_chunks.run_id = doomed.id),
     heads AS (DELETE FROM logs USING doomed WHERE logs.run_id = doomed.id),
     files AS (DELETE FROM artifacts USING doomed WHERE artifacts.run_id = doomed.id RETURNING artifacts.id),
     pieces AS (DELETE FROM artifact_chunks USING files WHERE artifact_chunks.artifact_id = files.id)
SELECT count(*) FROM gone;

-- name: purge
WITH days AS (DELETE FROM job_days WHERE job_id = %(id)s),
     used AS (DELETE FROM usage_days WHERE subject_id = %(id)s)
DELETE FROM jobs WHERE id = %(id)s;
