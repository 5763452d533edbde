-- name: workspaces_with_work
-- A loose scan: one index probe per workspace that has something ready, however much it has. Starts behind the workspace that was
-- served last, so that each gets its turn. A restored database that waits for its operator has no work for anybody, and nobody has
-- work for a worker that has left or was struck off: it has lost its runs and must come again under a new id. A workspace in which
-- a freeze has begun waits until the sweeper has put in line what may not start. In the order of turns, which the planner would not keep:
-- the last one tells where the next claim goes on.
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
-- The same for a worker that serves one workspace: whether there may be work for it now.
SELECT workers.workspace_id, EXISTS (SELECT FROM limits WHERE limits.workspace_id = workers.workspace_id)
       OR EXISTS (SELECT FROM disabled_types WHERE disabled_types.workspace_id = workers.workspace_id) AS is_limited
  FROM workers
 WHERE id = %(worker_id)s AND workspace_id = %(workspace_id)s AND alive_until >= %(now)s
   AND NOT EXISTS (SELECT FROM installation WHERE held_at IS NOT NULL)
   AND NOT EXISTS (SELECT FROM freezes WHERE freezes.workspace_id = workers.workspace_id AND is_start_pending
                      AND start_at <= %(now)s AND (end_at IS NULL OR end_at > %(now)s));

-- name: queues_of_workspace
-- Of its jobs, those queues that have work: a loose scan over the jobs, since `ready` is in the order of queues alone.
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
-- The same loose scan over queues, for workers that serve them all.
WITH RECURSIVE found AS (
    (SELECT queue, 1 AS n FROM ready WHERE queue > %(after)s AND target IS NULL ORDER BY queue LIMIT 1)
    UNION ALL
    SELECT (SELECT ready.queue FROM ready WHERE ready.queue > found.queue AND ready.target IS NULL ORDER BY ready.queue LIMIT 1), found.n + 1
      FROM found WHERE found.queue IS NOT NULL AND found.n < %(limit)s)
SELECT queue FROM found WHERE queue IS NOT NULL ORDER BY n;

-- name: take
-- An equal share of each workspace. MATERIALIZED keeps the planner from running the LIMIT again and taking too many; SKIP LOCKED lets
-- rival workers pass each other. A row is deleted where it was found, without another look into an index; one that was moved in the
-- same moment is found by the next claim. A job that already has a lease of its own fails the statement: see `claim_and`.
WITH taken AS MATERIALIZED (
    SELECT mine.place
      FROM unnest(%(workspace_ids)s::uuid[]) AS served (id)
     CROSS JOIN LATERAL (
           SELECT ctid AS place FROM ready
            WHERE queue = %(queue)s AND workspace_id = served.id AND target IS NULL AND available_at <= %(now)s AND type = ANY (%(types)s)
              AND (expires_at IS NULL OR expires_at > %(now)s)
            ORDER BY priority, available_at, position
            LIMIT %(share)s
              FOR UPDATE SKIP LOCKED) AS mine
     LIMIT %(most)s),
gone AS (DELETE FROM ready USING taken WHERE ready.ctid = taken.place RETURNING ready.*),
leased AS (
    INSERT INTO leases (workspace_id, run_id, job_id, worker_id, fence, leased_at, deadline_at, queue, type, priority, available_at,
                        planned_for, exclusive, concurrency_key, timeout, expires_at, trigger, attempts, retries, losses,
                        started_at, last_error)
    SELECT workspace_id, run_id, job_id, %(worker_id)s, fence + 1, %(now)s, %(now)s + timeout, queue, type, priority, available_at,
           planned_for, exclusive, concurrency_key, timeout, expires_at, trigger, attempts + 1, retries, losses,
           COALESCE(started_at, %(now)s), last_error
      FROM gone
 RETURNING workspace_id, run_id, job_id, fence, type, planned_for, attempts, deadline_at, trigger),
told AS (
    INSERT INTO events (workspace_id, at, kind, job_id, run_id, attempt)
    SELECT leased.workspace_id, %(now)s, 'run.started', leased.job_id, leased.run_id, leased.attempts
      FROM leased JOIN watches ON watches.workspace_id = leased.workspace_id AND watches.until > %(now)s)
SELECT * FROM leased;

-- name: unserved
-- What is meant for a host waits for that alone, whoever serves the queue.
SELECT groups.*
  FROM (SELECT queue, type, target, count(*) AS runs, min(available_at) AS since FROM ready
         WHERE workspace_id = %(workspace_id)s AND available_at <= %(by)s
           AND NOT EXISTS (SELECT FROM disabled_types
                            WHERE disabled_types.workspace_id = ready.workspace_id AND disabled_types.type = ready.type)
         GROUP BY queue, type, target) AS groups
 WHERE NOT EXISTS (SELECT FROM workers
                    WHERE groups.type = ANY (workers.types)
                      AND CASE WHEN groups.target IS NULL THEN workers.queues && ARRAY[groups.queue, '*']
                               ELSE workers.host_id = (SELECT id FROM hosts WHERE workspace_id = %(workspace_id)s
                                                          AND 'host/' || name = groups.target
                                                        UNION ALL
                                                       SELECT host_id FROM server_instances WHERE workspace_id = %(workspace_id)s
                                                          AND 'server/' || name = groups.target) END
                      AND workers.alive_until >= %(now)s AND NOT workers.is_draining
                      AND (workers.workspace_id IS NULL OR workers.workspace_id = %(workspace_id)s))
 ORDER BY since, queue, type
 LIMIT %(limit)s;
