-- name: subject
SELECT jobs.id, jobs.workspace_id, jobs.name, jobs.definition, jobs.status, jobs.status_reason, jobs.paused_until, jobs.revision, jobs.schedule_rev, jobs.created_at,
       jobs.updated_at, timers.runs_created, timers.skip_next, timers.skip_until, timers.next_at, live.number AS live_number
  FROM jobs
  JOIN timers ON timers.job_id = jobs.id
  LEFT JOIN runs AS live ON live.id = timers.live_run_id
 WHERE jobs.id = %(job_id)s;

-- name: is_there
SELECT id FROM jobs WHERE id = %(job_id)s AND purged_at IS NULL AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s);

-- name: names
SELECT id, name FROM jobs WHERE id = ANY (%(job_ids)s) AND purged_at IS NULL;

-- name: freezes
-- Of the workspace, from `since` on and into the future: what is to come explains as much as what is.
SELECT workspace_id, id, scope, start_at, end_at, after, per_minute, running, reason
  FROM freezes
 WHERE workspace_id = %(workspace_id)s AND (end_at IS NULL OR end_at > %(since)s)
 ORDER BY start_at;

-- name: ready_place
-- How many of its workspace are ahead of it in its queue, or for its target, as a claim would take them. Counting ends where it stops
-- being news.
SELECT mine.queue, mine.type, mine.target, mine.read_only, mine.available_at,
       (SELECT count(*) FROM (SELECT FROM ready
                               WHERE ((mine.target IS NULL AND target IS NULL AND queue = mine.queue) OR target = mine.target)
                                 AND workspace_id = mine.workspace_id AND read_only = mine.read_only AND available_at <= %(now)s
                                 AND (priority, available_at, position) < (mine.priority, mine.available_at, mine.position)
                               LIMIT %(most)s) AS ahead) AS ahead,
       (SELECT count(*) FROM (SELECT FROM ready
                               WHERE ((mine.target IS NULL AND target IS NULL AND queue = mine.queue) OR target = mine.target)
                                 AND workspace_id = mine.workspace_id AND read_only = mine.read_only AND available_at <= %(now)s
                               LIMIT %(most)s) AS line) AS line
  FROM ready AS mine
 WHERE mine.run_id = %(run_id)s;

-- name: waiting_place
-- Runs that wait for their turn stand in the line of their job, those at a limit in that of their workspace, the urgent first.
SELECT mine.waits_for, mine.available_at, mine.expires_at, mine.concurrency_key,
       CASE mine.waits_for
           WHEN 'turn' THEN (SELECT count(*) FROM waiting WHERE job_id = mine.job_id AND waits_for = 'turn' AND position < mine.position)
           WHEN 'limit' THEN (SELECT count(*) FROM waiting WHERE workspace_id = mine.workspace_id AND waits_for = 'limit'
                                                            AND (priority, position) < (mine.priority, mine.position)) END AS ahead,
       CASE mine.waits_for
           WHEN 'turn' THEN (SELECT count(*) FROM waiting WHERE job_id = mine.job_id AND waits_for = 'turn')
           WHEN 'limit' THEN (SELECT count(*) FROM waiting WHERE workspace_id = mine.workspace_id AND waits_for = 'limit') END AS line
  FROM waiting AS mine
 WHERE mine.run_id = %(run_id)s;

-- name: limits
SELECT key, cap, in_use FROM limits WHERE workspace_id = %(workspace_id)s AND key = ANY (%(keys)s) ORDER BY key;

-- name: workers
SELECT name, queues, types, is_draining, host_id, capacity, running_count FROM workers WHERE alive_until >= %(now)s ORDER BY name, id;
