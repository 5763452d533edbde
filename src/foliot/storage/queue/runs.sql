-- name: make
-- Runs that no schedule planned: by hand, by an upstream run, by a backfill. A dependent's run for one upstream run is made once.
WITH made AS MATERIALIZED (
    SELECT * FROM unnest(%(workspace_id)s::uuid[], %(id)s::uuid[], %(job_id)s::uuid[], %(number)s::bigint[], %(trigger)s::text[],
                         %(planned_for)s::timestamptz[], %(planned_key)s::timestamp[], %(fold)s::smallint[], %(schedule_rev)s::int[],
                         %(input)s::jsonb[], %(triggered_by)s::text[], %(upstream_run_id)s::uuid[], %(retry_of)s::uuid[],
                         %(note)s::text[], %(skip_reason)s::text[], %(waits_for)s::text[], %(queue)s::text[], %(type)s::text[], %(priority)s::smallint[],
                         %(available_at)s::timestamptz[], %(exclusive)s::boolean[], %(concurrency_key)s::text[],
                         %(timeout)s::interval[], %(expires_at)s::timestamptz[], %(target)s::text[], %(read_only)s::boolean[])
             AS made (workspace_id, id, job_id, number, trigger, planned_for, planned_key, fold, schedule_rev, input, triggered_by,
                      upstream_run_id, retry_of, note, skip_reason, waits_for, queue, type, priority, available_at, exclusive,
                      concurrency_key, timeout, expires_at, target, read_only)),
recorded AS (
    INSERT INTO runs (workspace_id, id, job_id, number, trigger, planned_for, planned_key, fold, schedule_rev, input, triggered_by,
                      upstream_run_id, retry_of, note, skip_reason, status, created_at, finished_at)
    SELECT workspace_id, id, job_id, number, trigger, planned_for, planned_key, fold, schedule_rev, input, triggered_by,
           upstream_run_id, retry_of, note, skip_reason, CASE WHEN skip_reason IS NOT NULL THEN 'skipped' END, %(now)s,
           CASE WHEN skip_reason IS NOT NULL THEN %(now)s END
      FROM made
        ON CONFLICT (job_id, upstream_run_id) WHERE trigger = 'dependency' DO NOTHING
 RETURNING id),
readied AS (
    INSERT INTO ready (workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive, concurrency_key,
                       timeout, expires_at, target, read_only, trigger)
    SELECT workspace_id, id, job_id, queue, type, priority, available_at, planned_for, exclusive, concurrency_key, timeout,
           expires_at, target, read_only, trigger
      FROM made JOIN recorded USING (id) WHERE waits_for IS NULL AND skip_reason IS NULL),
held AS (
    INSERT INTO waiting (workspace_id, run_id, job_id, waits_for, queue, type, priority, available_at, planned_for, exclusive,
                         concurrency_key, timeout, expires_at, target, read_only, trigger)
    SELECT workspace_id, id, job_id, waits_for, queue, type, priority, available_at, planned_for, exclusive, concurrency_key,
           timeout, expires_at, target, read_only, trigger
      FROM made JOIN recorded USING (id) WHERE waits_for IS NOT NULL AND skip_reason IS NULL),
told AS (
    INSERT INTO events (workspace_id, at, kind, job_id, run_id)
    SELECT made.workspace_id, %(now)s, 'run.skipped', made.job_id, made.id
      FROM made JOIN recorded USING (id) JOIN watches ON watches.workspace_id = made.workspace_id AND watches.until > %(now)s
     WHERE made.skip_reason IS NOT NULL)
SELECT id FROM recorded;

-- name: take_standing
-- Runs that no worker has. The delete is the lock: one that a worker claims at this moment is not among them.
WITH readied AS (
    DELETE FROM ready WHERE run_id = ANY (%(run_ids)s)
 RETURNING run_id, job_id, NULL::text AS waits_for, trigger, fence, attempts, retries, losses, started_at, last_error),
held AS (
    DELETE FROM waiting WHERE run_id = ANY (%(run_ids)s)
 RETURNING run_id, job_id, waits_for, trigger, fence, attempts, retries, losses, started_at, last_error)
SELECT * FROM readied UNION ALL SELECT * FROM held;

-- name: end_standing
WITH gone AS (
    UPDATE runs
       SET status = ended.status, skip_reason = ended.skip_reason, note = COALESCE(ended.note, runs.note), error = ended.error,
           started_at = ended.started_at, finished_at = %(now)s, attempt_count = ended.attempts, fence = ended.fence
      FROM unnest(%(run_ids)s::uuid[], %(statuses)s::text[], %(skip_reasons)s::text[], %(notes)s::text[], %(errors)s::jsonb[],
                  %(started_at)s::timestamptz[], %(attempts)s::int[], %(fences)s::int[])
           AS ended (run_id, status, skip_reason, note, error, started_at, attempts, fence)
     WHERE runs.id = ended.run_id
 RETURNING runs.workspace_id, runs.job_id, runs.id, runs.status, runs.attempt_count)
INSERT INTO events (workspace_id, at, kind, job_id, run_id, attempt)
SELECT gone.workspace_id, %(now)s, 'run.' || gone.status, gone.job_id, gone.id, NULLIF(gone.attempt_count, 0)
  FROM gone JOIN watches ON watches.workspace_id = gone.workspace_id AND watches.until > %(now)s;

-- name: expired
-- Standing runs whose start deadline or window has passed.
(SELECT run_id, job_id FROM ready WHERE expires_at <= %(now)s ORDER BY expires_at LIMIT %(limit)s)
UNION ALL
(SELECT run_id, job_id FROM waiting WHERE expires_at <= %(now)s ORDER BY expires_at LIMIT %(limit)s);

-- name: late
SELECT run_id, job_id, workspace_id, expires_at, trigger, attempts, NULL::text AS waits_for, target FROM ready WHERE run_id = ANY (%(run_ids)s) AND expires_at <= %(now)s
 UNION ALL
SELECT run_id, job_id, workspace_id, expires_at, trigger, attempts, waits_for, NULL AS target FROM waiting WHERE run_id = ANY (%(run_ids)s) AND expires_at <= %(now)s;

-- name: request_cancel
-- Running ones are asked; their worker ends them, or the sweeper does after a while.
UPDATE leases SET cancel_requested_at = COALESCE(cancel_requested_at, %(now)s) WHERE run_id = ANY (%(run_ids)s) RETURNING run_id;

-- name: set_note
UPDATE runs SET note = %(note)s WHERE id = %(id)s AND status IS NULL;

-- name: find
SELECT workspace_id, id, job_id, status, trigger, planned_for, planned_key, fold, schedule_rev, planned_until, input
  FROM runs WHERE id = %(id)s;

-- name: known
SELECT id FROM runs WHERE id = ANY (%(run_ids)s);

-- name: recorded_between
-- The planned times of a job that have their record, gaps that reach into the range included. Runs that people, programs or upstream
-- jobs asked for stand for no planned time, and a run made again stands for one that is here already.
SELECT planned_for, planned_until, planned_key, fold, schedule_rev, trigger, status
  FROM runs
 WHERE job_id = %(job_id)s AND planned_for < %(end)s AND (planned_for >= %(start)s OR planned_until >= %(start)s)
   AND trigger IN ('schedule', 'backfill', 'import');
