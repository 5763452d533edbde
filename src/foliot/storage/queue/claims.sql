-- Reads of a claim: where there is work, and what there is to do in claimed runs.

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
          FOR UPDATE SKIP LOCKED) AS mine;

-- name: jobs_of_runs
-- Definitions are rarely in the cache, so the claim itself does not join them.
SELECT id, name, definition -> 'config', definition -> 'payload' FROM jobs WHERE id = ANY (%(job_ids)s::uuid[]);

-- name: inputs_of_runs
SELECT id, input FROM runs WHERE id = ANY (%(run_ids)s::uuid[]) AND input IS NOT NULL;

-- name: unserved
-- Runs with a target wait for its host alone, whichever workers serve the queue.
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
