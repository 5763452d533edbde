-- Every statement that writes ready, waiting or leases, apart from those that fire timers and settle attempts; and the reads of a claim.

-- name: insert_runs
-- Runs that no schedule planned: manual, by an upstream run, by a backfill. An upstream run starts each dependent once.
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
announced AS (
    INSERT INTO events (workspace_id, at, kind, job_id, run_id)
    SELECT made.workspace_id, %(now)s, 'run.skipped', made.job_id, made.id
      FROM made JOIN recorded USING (id) JOIN watches ON watches.workspace_id = made.workspace_id AND watches.until > %(now)s
     WHERE made.skip_reason IS NOT NULL)
SELECT id FROM recorded;

-- name: workspaces_with_work
-- A loose index scan: one probe per workspace with ready runs, however many it has. It starts behind the workspace that was served last,
-- so that each gets its turn. There is no work while a restored database waits for its operator, and none for a worker that has left or
-- was removed: it has lost its runs and registers again under a new id. A workspace in which a freeze has begun waits until the sweeper
-- has held its runs. Ordered by turn, which the planner would not keep: the last row says where the next claim continues.
WITH RECURSIVE found AS (
    (SELECT workspace_id, 1 AS n FROM ready WHERE queue = %(queue)s AND workspace_id > %(after)s AND target IS NULL
        AND NOT EXISTS (SELECT FROM installation WHERE held_at IS NOT NULL)
        AND EXISTS (SELECT FROM workers WHERE id = %(worker_id)s AND alive_until >= %(now)s)
      ORDER BY workspace_id LIMIT 1)
    UNION ALL
    SELECT (SELECT ready.workspace_id FROM ready WHERE ready.queue = %(queue)s AND ready.workspace_id > found.workspace_id AND ready.target IS NULL
             ORDER BY ready.workspace_id LIMIT 1), found.n + 1
      FROM found WHERE found.workspace_id IS NOT NULL AND found.n < %(limit)s)
SELECT workspace_id, EXISTS (SELECT FROM limits WHERE limits.workspace_id = found.workspace_id)
       OR EXISTS (SELECT FROM disabled_types WHERE disabled_types.workspace_id = found.workspace_id) AS is_limited,
       EXISTS (SELECT FROM freezes WHERE freezes.workspace_id = found.workspace_id AND is_start_pending
                  AND start_at <= %(now)s AND (end_at IS NULL OR end_at > %(now)s)) AS is_frozen
  FROM found
 WHERE workspace_id IS NOT NULL
 ORDER BY n;

-- name: bound
-- The workspace of a worker that serves one alone, unless it may not claim there now.
SELECT workers.workspace_id, EXISTS (SELECT FROM limits WHERE limits.workspace_id = workers.workspace_id)
       OR EXISTS (SELECT FROM disabled_types WHERE disabled_types.workspace_id = workers.workspace_id) AS is_limited
  FROM workers
 WHERE id = %(worker_id)s AND workspace_id = %(workspace_id)s AND alive_until >= %(now)s
   AND NOT EXISTS (SELECT FROM installation WHERE held_at IS NOT NULL)
   AND NOT EXISTS (SELECT FROM freezes WHERE freezes.workspace_id = workers.workspace_id AND is_start_pending
                      AND start_at <= %(now)s AND (end_at IS NULL OR end_at > %(now)s));

-- name: queues_of_workspace
-- A loose index scan over the jobs of the workspace: the index of `ready` begins with the queue.
WITH RECURSIVE found AS (
    (SELECT queue FROM jobs WHERE workspace_id = %(workspace_id)s ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT jobs.queue FROM jobs WHERE jobs.workspace_id = %(workspace_id)s AND jobs.queue > found.queue
             ORDER BY jobs.queue LIMIT 1)
      FROM found WHERE found.queue IS NOT NULL)
SELECT queue FROM found
 WHERE queue IS NOT NULL
   AND EXISTS (SELECT FROM ready WHERE ready.queue = found.queue AND ready.workspace_id = %(workspace_id)s AND ready.target IS NULL)
 LIMIT %(limit)s;

-- name: queues_with_work
-- A loose index scan over the queues, for workers that serve all of them.
WITH RECURSIVE found AS (
    (SELECT queue, 1 AS n FROM ready WHERE queue > %(after)s AND target IS NULL ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT ready.queue FROM ready WHERE ready.queue > found.queue AND ready.target IS NULL ORDER BY ready.queue LIMIT 1), found.n + 1
      FROM found WHERE found.queue IS NOT NULL AND found.n < %(limit)s)
SELECT queue FROM found WHERE queue IS NOT NULL ORDER BY n;

-- name: lock_ready
-- The same runs as `run_queue.claim` would lease, locked only: limits and disabled types decide which of them may start.
SELECT mine.run_id, mine.workspace_id, mine.concurrency_key,
       EXISTS (SELECT FROM disabled_types WHERE disabled_types.workspace_id = mine.workspace_id AND disabled_types.type = mine.type) AS is_off
  FROM unnest(%(workspace_ids)s::uuid[]) AS served (id)
 CROSS JOIN LATERAL (
       SELECT run_id, workspace_id, concurrency_key, type FROM ready
        WHERE queue = %(queue)s AND workspace_id = served.id AND target IS NULL AND available_at <= %(now)s AND type = ANY (%(types)s)
          AND (expires_at IS NULL OR expires_at > %(now)s)
        ORDER BY priority, available_at, position
        LIMIT %(share)s
          FOR UPDATE SKIP LOCKED) AS mine
 LIMIT %(most)s;

-- name: lock_ready_elsewhere
-- As `lock_ready`, without the runs that would call one of the receivers. Only the first hundred runs of a workspace are examined: a long
-- backlog for one receiver must not be read again by every claim.
SELECT mine.run_id, mine.workspace_id, mine.concurrency_key,
       EXISTS (SELECT FROM disabled_types WHERE disabled_types.workspace_id = mine.workspace_id AND disabled_types.type = mine.type) AS is_off
  FROM unnest(%(workspace_ids)s::uuid[]) AS served (id)
 CROSS JOIN LATERAL (
       SELECT ready.run_id, ready.workspace_id, ready.concurrency_key, ready.type
         FROM (SELECT near.run_id FROM ready AS near
                WHERE near.queue = %(queue)s AND near.workspace_id = served.id AND near.target IS NULL AND near.available_at <= %(now)s
                  AND near.type = ANY (%(types)s) AND (near.expires_at IS NULL OR near.expires_at > %(now)s)
                ORDER BY near.priority, near.available_at, near.position
                LIMIT 100) AS near
         JOIN ready USING (run_id)
         JOIN jobs ON jobs.id = ready.job_id
        WHERE ready.type <> 'http'
           OR COALESCE(substring(lower(jobs.definition -> 'config' ->> 'url') FROM '^https?://([^/?#]*)'), '') <> ALL (%(receivers)s::text[])
        ORDER BY ready.priority, ready.available_at, ready.position
        LIMIT %(share)s
          FOR UPDATE OF ready SKIP LOCKED) AS mine
 LIMIT %(most)s;

-- name: jobs_of_runs
-- Definitions are rarely in the cache, so the claim itself does not join them.
SELECT jobs.id, jobs.name, definition -> 'config', definition -> 'payload', workspaces.slug, jobs.revision
  FROM jobs JOIN workspaces ON workspaces.id = jobs.workspace_id
 WHERE jobs.id = ANY (%(job_ids)s::uuid[]);

-- name: correct_revisions
-- Leases of jobs that were edited between the claim and the read of their definition.
UPDATE leases SET revision = read.revision
  FROM unnest(%(run_ids)s::uuid[], %(revisions)s::int[]) AS read (run_id, revision)
 WHERE leases.run_id = read.run_id;

-- name: records_of_runs
-- Runs that were fired a moment ago: the probes of the primary key stay at its right edge.
SELECT id, number, input, triggered_by,
       (SELECT jsonb_build_object('job_id', upstream.job_id, 'run_id', upstream.id, 'status', upstream.status, 'output', upstream.output)
          FROM runs AS upstream WHERE upstream.id = runs.upstream_run_id) AS upstream
  FROM runs WHERE id = ANY (%(run_ids)s::uuid[]);

-- name: claim
-- An equal share of each workspace. MATERIALIZED keeps the planner from running the LIMIT again and taking too many; SKIP LOCKED: rival
-- workers must not wait for each other. A row is deleted by its ctid, without another index probe; one that is moved in the same
-- moment is found by the next claim. A job that already has a lease makes the statement fail: see `services.workers.claim.claim_and`.
WITH taken AS MATERIALIZED (
    SELECT mine.address
      FROM unnest(%(workspace_ids)s::uuid[]) AS served (id)
     CROSS JOIN LATERAL (
           SELECT ctid AS address FROM ready
            WHERE queue = %(queue)s AND workspace_id = served.id AND target IS NULL AND available_at <= %(now)s AND type = ANY (%(types)s)
              AND (expires_at IS NULL OR expires_at > %(now)s)
            ORDER BY priority, available_at, position
            LIMIT %(share)s
              FOR UPDATE SKIP LOCKED) AS mine
     LIMIT %(most)s),
gone AS (DELETE FROM ready USING taken WHERE ready.ctid = taken.address RETURNING ready.*),
leased AS (
    INSERT INTO leases (workspace_id, run_id, job_id, worker_id, fence, leased_at, deadline_at, queue, type, priority, available_at,
                        planned_for, exclusive, concurrency_key, timeout, expires_at, trigger, attempts, retries, losses,
                        started_at, last_error, revision)
    SELECT workspace_id, run_id, job_id, %(worker_id)s, fence + 1, %(now)s, %(now)s + LEAST(timeout, %(longest)s), queue, type, priority, available_at,
           planned_for, exclusive, concurrency_key, timeout, expires_at, trigger, attempts + 1, retries, losses,
           COALESCE(started_at, %(now)s), last_error, (SELECT revision FROM jobs WHERE jobs.id = gone.job_id)
      FROM gone
 RETURNING workspace_id, run_id, job_id, fence, type, planned_for, attempts, deadline_at, trigger, revision),
announced AS (
    INSERT INTO events (workspace_id, at, kind, job_id, run_id, attempt)
    SELECT leased.workspace_id, %(now)s, 'run.started', leased.job_id, leased.run_id, leased.attempts
      FROM leased JOIN watches ON watches.workspace_id = leased.workspace_id AND watches.until > %(now)s)
SELECT * FROM leased;

-- name: claim_locked
-- Runs that the caller has locked by `limits.ask` or `hosts.ask`.
WITH leased AS (
    INSERT INTO leases (workspace_id, run_id, job_id, worker_id, fence, leased_at, deadline_at, queue, type, priority, available_at,
                        planned_for, exclusive, concurrency_key, host_id, read_only, timeout, expires_at, trigger, attempts, retries, losses,
                        started_at, last_error, revision)
    SELECT workspace_id, run_id, job_id, %(worker_id)s, fence + 1, %(now)s, %(now)s + LEAST(timeout, %(longest)s), queue, type, priority, available_at,
           planned_for, exclusive, concurrency_key, %(host_id)s, read_only, timeout, expires_at, trigger, attempts + 1, retries, losses,
           COALESCE(started_at, %(now)s), last_error, (SELECT revision FROM jobs WHERE jobs.id = ready.job_id)
      FROM ready WHERE run_id = ANY (%(run_ids)s)
        ON CONFLICT DO NOTHING
 RETURNING workspace_id, run_id, job_id, fence, type, planned_for, attempts, deadline_at, trigger, revision),
gone AS (DELETE FROM ready USING leased WHERE ready.run_id = leased.run_id),
announced AS (
    INSERT INTO events (workspace_id, at, kind, job_id, run_id, attempt)
    SELECT leased.workspace_id, %(now)s, 'run.started', leased.job_id, leased.run_id, leased.attempts
      FROM leased JOIN watches ON watches.workspace_id = leased.workspace_id AND watches.until > %(now)s)
SELECT * FROM leased;

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

-- name: promote_freed
-- For each limit with free permits, the most urgent runs that wait for it and of these the oldest, unless another limit still holds
-- them. SKIP LOCKED: a transaction that has such a row ends or freezes the run and holds its timer, which we must not wait for while we
-- hold a limit.
WITH freed AS (
    SELECT asked.workspace_id, asked.key, LEAST(asked.most, limits.cap - limits.in_use) AS most
      FROM unnest(%(workspace_ids)s::uuid[], %(keys)s::text[], %(most)s::int[]) AS asked (workspace_id, key, most)
      JOIN limits USING (workspace_id, key)
     WHERE limits.cap > limits.in_use),
found AS (
    SELECT mine.* FROM freed CROSS JOIN LATERAL (
           SELECT workspace_id, run_id, priority, position FROM waiting
            WHERE waiting.workspace_id = freed.workspace_id AND waits_for = 'limit' AND concurrency_key = freed.key
            ORDER BY priority, position LIMIT freed.most) AS mine
     WHERE freed.key <> ''
    UNION
    SELECT mine.* FROM freed CROSS JOIN LATERAL (
           SELECT workspace_id, run_id, priority, position FROM waiting
            WHERE waiting.workspace_id = freed.workspace_id AND waits_for = 'limit'
              AND NOT EXISTS (SELECT FROM limits WHERE limits.workspace_id = waiting.workspace_id
                                 AND limits.key = waiting.concurrency_key AND limits.in_use >= limits.cap)
            ORDER BY priority, position LIMIT freed.most) AS mine
     WHERE freed.key = ''),
ranked AS (SELECT found.*, row_number() OVER (PARTITION BY workspace_id ORDER BY priority, position) AS place FROM found),
locked AS MATERIALIZED (
    SELECT waiting.run_id
      FROM waiting
      JOIN ranked USING (run_id)
      LEFT JOIN limits AS whole ON whole.workspace_id = ranked.workspace_id AND whole.key = ''
     WHERE whole.cap IS NULL OR ranked.place <= whole.cap - whole.in_use
       FOR UPDATE OF waiting SKIP LOCKED),
gone AS (DELETE FROM waiting USING locked WHERE waiting.run_id = locked.run_id RETURNING waiting.*)
INSERT INTO ready (workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive, concurrency_key, target, read_only,
                   timeout, expires_at, trigger, fence, attempts, retries, losses, started_at, last_error)
SELECT workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive, concurrency_key, target, read_only, timeout,
       expires_at, trigger, fence, attempts, retries, losses, started_at, last_error
  FROM gone ORDER BY position;

-- name: promote_uncapped
-- Runs that wait for a limit that was removed.
WITH locked AS MATERIALIZED (
    SELECT run_id FROM waiting
     WHERE waits_for = 'limit'
       AND NOT EXISTS (SELECT FROM limits WHERE limits.workspace_id = waiting.workspace_id
                          AND (limits.key = '' OR limits.key = waiting.concurrency_key))
     ORDER BY position LIMIT %(limit)s
       FOR UPDATE OF waiting SKIP LOCKED),
gone AS (DELETE FROM waiting USING locked WHERE waiting.run_id = locked.run_id RETURNING waiting.*)
INSERT INTO ready (workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive, concurrency_key, target, read_only,
                   timeout, expires_at, trigger, fence, attempts, retries, losses, started_at, last_error)
SELECT workspace_id, run_id, job_id, queue, type, priority, available_at, planned_for, exclusive, concurrency_key, target, read_only, timeout,
       expires_at, trigger, fence, attempts, retries, losses, started_at, last_error
  FROM gone ORDER BY position;

-- name: set_wait
UPDATE waiting SET waits_for = %(waits_for)s WHERE run_id = ANY (%(run_ids)s);

-- name: set_wait_until
UPDATE waiting SET waits_for = %(waits_for)s, expires_at = %(until)s WHERE run_id = %(run_id)s;

-- name: wait_for_opening
UPDATE waiting SET waits_for = 'window', available_at = %(at)s, expires_at = %(until)s WHERE run_id = %(run_id)s;

-- name: hold_ready
-- From `ready` to `waiting`. The delete is the lock: a run that a worker claims at this moment is not among them.
WITH gone AS (DELETE FROM ready WHERE run_id = ANY (%(run_ids)s) RETURNING *)
INSERT INTO waiting (workspace_id, run_id, job_id, waits_for, queue, type, priority, available_at, planned_for, exclusive, concurrency_key,
                     target, read_only, timeout, expires_at, trigger, fence, attempts, retries, losses, started_at, last_error)
SELECT workspace_id, run_id, job_id, %(waits_for)s, queue, type, priority, available_at, planned_for, exclusive, concurrency_key, target, read_only,
       timeout, expires_at, trigger, fence, attempts, retries, losses, started_at, last_error
  FROM gone ORDER BY priority, available_at, position;

-- name: queue_scheduled
-- Scheduled runs of a stopped job wait for their turn again, ahead of those that wait already: they were ahead before. Gate, window,
-- freeze and limits are checked again when their turn comes; the expiry of a gate goes with the gate.
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

-- name: requeue
-- Next attempts of stopped jobs: each goes ahead of all runs that wait for their turn in its job.
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

-- name: take_unclaimed
-- Runs that no worker has. The delete is the lock: a run that a worker claims at this moment is not among them.
WITH readied AS (
    DELETE FROM ready WHERE run_id = ANY (%(run_ids)s)
 RETURNING run_id, job_id, NULL::text AS waits_for, trigger, fence, attempts, retries, losses, started_at, last_error),
held AS (
    DELETE FROM waiting WHERE run_id = ANY (%(run_ids)s)
 RETURNING run_id, job_id, waits_for, trigger, fence, attempts, retries, losses, started_at, last_error)
SELECT * FROM readied UNION ALL SELECT * FROM held;

-- name: discard
-- Queue rows of runs that have ended or are gone: working on one would change a final record.
WITH over AS (SELECT asked.id FROM unnest(%(run_ids)s::uuid[]) AS asked (id) LEFT JOIN runs ON runs.id = asked.id
               WHERE runs.id IS NULL OR runs.status IS NOT NULL),
readied AS (DELETE FROM ready USING over WHERE ready.run_id = over.id RETURNING ready.run_id),
held AS (DELETE FROM waiting USING over WHERE waiting.run_id = over.id RETURNING waiting.run_id)
SELECT run_id FROM readied UNION ALL SELECT run_id FROM held;

-- name: purge_job
-- In the order of locks. A later report finds no lease and is refused.
WITH leased AS (DELETE FROM leases WHERE job_id = %(job_id)s),
     readied AS (DELETE FROM ready
                  WHERE ((target IS NULL AND queue = %(queue)s AND workspace_id = %(workspace_id)s)
                      OR (target = %(target)s AND workspace_id = %(workspace_id)s)) AND job_id = %(job_id)s)
DELETE FROM waiting WHERE job_id = %(job_id)s;

-- name: request_cancel
-- The worker ends the run, or the sweeper does after a grace period.
UPDATE leases SET cancel_requested_at = COALESCE(cancel_requested_at, %(now)s) WHERE run_id = ANY (%(run_ids)s) RETURNING run_id;

-- name: load_priorities
-- Of leased runs, by their primary key.
SELECT run_id, priority FROM leases WHERE run_id = ANY(%(run_ids)s);

-- name: set_external_ids
-- Under its fence: a lease that was taken away is not this worker's to name.
WITH mine AS MATERIALIZED (
    SELECT leases.run_id, named.external_id
      FROM leases
      JOIN unnest(%(run_ids)s::uuid[], %(fences)s::int[], %(external_ids)s::text[]) AS named (run_id, fence, external_id)
        ON leases.run_id = named.run_id AND leases.fence = named.fence
     ORDER BY leases.run_id
       FOR UPDATE OF leases)
UPDATE leases SET external_id = mine.external_id FROM mine WHERE leases.run_id = mine.run_id;

-- name: set_progress
-- Under its fence: a lease that was taken away is not this worker's to report on.
UPDATE leases SET progress = reported.progress
  FROM unnest(%(run_ids)s::uuid[], %(fences)s::bigint[], %(progresses)s::jsonb[]) AS reported (run_id, fence, progress)
 WHERE leases.run_id = reported.run_id AND leases.fence = reported.fence;
