-- Settling: locked leases, the statements that end attempts, and reads of leases.

-- name: lock
-- The leases that this worker still holds under this fence. A missing one belongs to another worker now, or has ended. Work that is done
-- elsewhere counts against no limit.
SELECT leases.run_id, leases.job_id, leases.trigger, leases.attempts, leases.retries, leases.losses, leases.started_at,
       leases.cancel_requested_at, leases.last_error, leases.workspace_id, leases.concurrency_key,
       leases.type <> 'check_in' AND EXISTS (SELECT FROM limits WHERE limits.workspace_id = leases.workspace_id) AS is_limited
  FROM leases
  JOIN unnest(%(run_ids)s::uuid[], %(fences)s::int[], %(worker_ids)s::uuid[]) AS held (run_id, fence, worker_id)
    ON leases.run_id = held.run_id AND leases.fence = held.fence AND leases.worker_id = held.worker_id
 ORDER BY leases.run_id
   FOR UPDATE OF leases;

-- name: find
SELECT run_id, fence, worker_id FROM leases WHERE run_id = %(run_id)s;

-- name: reported_before
-- Reports that were accepted before and whose acknowledgement was lost: the run or the attempt has just this end.
SELECT reported.run_id
  FROM unnest(%(run_ids)s::uuid[], %(fences)s::int[], %(statuses)s::text[]) AS reported (run_id, fence, status)
 WHERE EXISTS (SELECT FROM runs WHERE runs.id = reported.run_id AND runs.fence = reported.fence AND runs.worker_id = %(worker_id)s
                  AND runs.status = reported.status)
    OR EXISTS (SELECT FROM attempts WHERE attempts.run_id = reported.run_id AND attempts.fence = reported.fence
                  AND attempts.worker_id = %(worker_id)s AND attempts.status = reported.status);

-- name: abandoned
-- Runs whose worker is no longer registered: it left, or was removed because its heartbeats stopped. Those that are done elsewhere have none.
SELECT leases.run_id, leases.job_id, leases.fence, leases.worker_id
  FROM leases
 WHERE NOT EXISTS (SELECT FROM workers WHERE workers.id = leases.worker_id) AND leases.type <> 'check_in'
 LIMIT %(limit)s;

-- name: overdue
-- Runs past their deadline although their worker is alive: it should have reported them by now.
SELECT run_id, job_id, fence, worker_id FROM leases WHERE deadline_at < %(by)s LIMIT %(limit)s;

-- name: settle
-- A batch in one statement: leases are deleted, ends written, attempts recorded, and next attempts made ready by the rules that their
-- job has now: it may have been edited since. A run that was handed back keeps the error of the attempt before.
WITH settled AS MATERIALIZED (
    SELECT * FROM unnest(%(run_ids)s::uuid[], %(statuses)s::text[], %(skip_reasons)s::text[], %(notes)s::text[], %(attempts)s::text[],
                         %(errors)s::jsonb[], %(outputs)s::jsonb[], %(retry_ats)s::timestamptz[], %(retries)s::int[],
                         %(losses)s::int[], %(expires_ats)s::timestamptz[], %(queues)s::text[], %(types)s::text[],
                         %(priorities)s::smallint[], %(timeouts)s::interval[], %(concurrency_keys)s::text[], %(targets)s::text[],
                         %(read_onlys)s::boolean[])
             AS settled (run_id, status, skip_reason, note, attempt, error, output, retry_at, retries, losses, expires_at, queue, type,
                         priority, timeout, concurrency_key, target, read_only)),
gone AS (
    DELETE FROM leases USING settled WHERE leases.run_id = settled.run_id
 RETURNING leases.*),
ended AS (
    UPDATE runs
       SET status = settled.status, skip_reason = settled.skip_reason, note = COALESCE(settled.note, runs.note), error = settled.error,
           output = settled.output, started_at = gone.started_at, finished_at = %(now)s, attempt_count = gone.attempts,
           fence = gone.fence, worker_id = gone.worker_id, revision = gone.revision
      FROM settled JOIN gone USING (run_id)
     WHERE runs.id = settled.run_id AND settled.retry_at IS NULL
 RETURNING runs.id),
tried AS (
    INSERT INTO attempts (workspace_id, run_id, number, status, worker_id, fence, leased_at, ended_at, error, external_id, revision)
    SELECT gone.workspace_id, gone.run_id, gone.attempts, settled.attempt, gone.worker_id, gone.fence, gone.leased_at, %(now)s,
           settled.error, gone.external_id, gone.revision
      FROM settled JOIN gone USING (run_id)
     WHERE settled.retry_at IS NOT NULL OR gone.attempts > 1 OR gone.external_id IS NOT NULL),
again AS (
    INSERT INTO ready (workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive, concurrency_key,
                       target, read_only, timeout, expires_at, trigger, fence, attempts, retries, losses, started_at, last_error)
    SELECT gone.workspace_id, gone.run_id, gone.job_id, settled.queue, settled.type, settled.priority, settled.retry_at,
           gone.planned_for, gone.exclusive, settled.concurrency_key, settled.target, settled.read_only, settled.timeout,
           settled.expires_at, gone.trigger, gone.fence, gone.attempts, settled.retries, settled.losses, gone.started_at,
           COALESCE(settled.error, gone.last_error)
      FROM settled JOIN gone USING (run_id)
     WHERE settled.retry_at IS NOT NULL),
announced AS (
    INSERT INTO events (workspace_id, at, kind, job_id, run_id, attempt)
    SELECT gone.workspace_id, %(now)s, 'run.' || CASE WHEN settled.retry_at IS NULL THEN settled.status ELSE 'retrying' END,
           gone.job_id, gone.run_id, gone.attempts
      FROM settled JOIN gone USING (run_id) JOIN watches ON watches.workspace_id = gone.workspace_id AND watches.until > %(now)s)
SELECT count(*) AS settled FROM gone;

-- name: settle_successes
-- The fast path of settling: successes that change nothing but the run, its lease and the counters of its timer. `is_fast_path` is the
-- one test of the job: active, with no run waiting, no pending end, no failures to clear, no incident to close, no dependents, and no fixed delay, which counts
-- from the end of its run (`spec` is canonical text; inside a string its quotes would be escaped). The lease must be exclusive, so that no
-- other run of the job is live, and its workspace without limits, so that no permit goes back. Returned are the runs that were left
-- alone: not this worker's under this fence, or not on the fast path.
--
-- The timers of all that was reported are locked first, with those of their dependents, as timers.lock_with_dependents does.
--
-- Each lease is found by its key. The planner does not see how many dead rows a busy table holds and would scan all of it; the
-- sub-selects hide the number of reports from it. A lease that another transaction ended while we waited for its timer is not found.
WITH RECURSIVE wanted (ids, cancelling) AS (
    SELECT %(job_ids)s::uuid[], %(job_ids)s::uuid[]
    UNION ALL
    SELECT behind.ids, behind.cancelling
      FROM wanted CROSS JOIN LATERAL (
           SELECT array_agg(job_id) AS ids, array_agg(job_id) FILTER (WHERE (
                  SELECT position('"cancel_running"' IN spec) > 0 FROM timers WHERE timers.job_id = dependencies.job_id)) AS cancelling
             FROM dependencies WHERE upstream_id = ANY (wanted.cancelling)) AS behind
     WHERE behind.ids IS NOT NULL),
locked AS MATERIALIZED (
    SELECT job_id, status = 'active' AND waiting = 0 AND ending IS NULL AND failures_in_a_row = 0 AND NOT has_incident AND NOT has_dependents
           AND position('"mode":"fixed_delay"' IN spec) = 0 AS is_fast_path
      FROM timers
     WHERE job_id = ANY (ARRAY(SELECT unnest(ids) FROM wanted))
     ORDER BY job_id
       FOR UPDATE),
excluded AS MATERIALIZED (
    SELECT job_id FROM unnest(%(job_ids)s::uuid[]) AS reported (job_id) EXCEPT ALL SELECT job_id FROM locked WHERE is_fast_path),
reported AS MATERIALIZED (
    SELECT * FROM unnest((SELECT %(run_ids)s::uuid[]), (SELECT %(fences)s::int[]), (SELECT %(worker_ids)s::uuid[]),
                         (SELECT %(outputs)s::jsonb[]))
             AS reported (run_id, fence, worker_id, output)),
gone AS (
    DELETE FROM leases USING reported
     WHERE leases.run_id = reported.run_id AND leases.fence = reported.fence AND leases.worker_id = reported.worker_id
       AND leases.exclusive AND NOT EXISTS (SELECT FROM limits WHERE limits.workspace_id = leases.workspace_id)
       AND NOT EXISTS (SELECT FROM excluded WHERE excluded.job_id = leases.job_id)
 RETURNING leases.workspace_id, leases.run_id, leases.job_id, leases.attempts, leases.worker_id, leases.fence, leases.leased_at,
           leases.started_at, leases.external_id, leases.revision, reported.output),
ended AS (
    UPDATE runs
       SET status = 'succeeded', skip_reason = NULL, error = NULL, output = gone.output, started_at = gone.started_at,
           finished_at = %(now)s, attempt_count = gone.attempts, fence = gone.fence, worker_id = gone.worker_id, revision = gone.revision
      FROM gone WHERE runs.id = gone.run_id),
tried AS (
    INSERT INTO attempts (workspace_id, run_id, number, status, worker_id, fence, leased_at, ended_at, external_id, revision)
    SELECT workspace_id, run_id, attempts, 'succeeded', worker_id, fence, leased_at, %(now)s, external_id, revision
      FROM gone WHERE attempts > 1 OR external_id IS NOT NULL),
counted AS (
    UPDATE timers
       SET version = version + 1, live = live - 1, live_run_id = CASE WHEN live > 1 THEN live_run_id END,
           live_until = CASE WHEN live > 1 THEN live_until END, run_count = run_count + 1, success_count = success_count + 1,
           last_run_at = gone.started_at, last_run_id = gone.run_id, last_run_status = 'succeeded', last_error = NULL,
           last_success_at = %(now)s, last_success_run_id = gone.run_id, last_end_at = %(now)s, last_end_run_id = gone.run_id
      FROM gone WHERE timers.job_id = gone.job_id),
announced AS (
    INSERT INTO events (workspace_id, at, kind, job_id, run_id, attempt)
    SELECT gone.workspace_id, %(now)s, 'run.succeeded', gone.job_id, gone.run_id, gone.attempts
      FROM gone JOIN watches ON watches.workspace_id = gone.workspace_id AND watches.until > %(now)s)
SELECT run_id FROM reported EXCEPT ALL SELECT run_id FROM gone;

-- name: end_unclaimed
-- The ends of runs that no worker had; their queue rows are gone already.
WITH gone AS (
    UPDATE runs
       SET status = ended.status, skip_reason = ended.skip_reason, note = COALESCE(ended.note, runs.note), error = ended.error,
           started_at = ended.started_at, finished_at = %(now)s, attempt_count = ended.attempts, fence = ended.fence,
           revision = (SELECT revision FROM attempts WHERE attempts.run_id = runs.id ORDER BY number DESC LIMIT 1)
      FROM unnest(%(run_ids)s::uuid[], %(statuses)s::text[], %(skip_reasons)s::text[], %(notes)s::text[], %(errors)s::jsonb[],
                  %(started_at)s::timestamptz[], %(attempts)s::int[], %(fences)s::int[])
           AS ended (run_id, status, skip_reason, note, error, started_at, attempts, fence)
     WHERE runs.id = ended.run_id
 RETURNING runs.workspace_id, runs.job_id, runs.id, runs.status, runs.attempt_count)
INSERT INTO events (workspace_id, at, kind, job_id, run_id, attempt)
SELECT gone.workspace_id, %(now)s, 'run.' || gone.status, gone.job_id, gone.id, NULLIF(gone.attempt_count, 0)
  FROM gone JOIN watches ON watches.workspace_id = gone.workspace_id AND watches.until > %(now)s;
