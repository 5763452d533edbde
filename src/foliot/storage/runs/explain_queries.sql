-- name: load_job
-- `status_by` is the name of the principal, whose id stands in the job; Foliot's own changes have a name there.
SELECT jobs.id, jobs.workspace_id, jobs.definition, jobs.status, jobs.status_reason, COALESCE(principals.name, jobs.status_by) AS status_by, jobs.status_at, jobs.paused_until, jobs.revision,
       jobs.schedule_rev, jobs.created_at, jobs.updated_at, timers.runs_created, timers.skip_next IS NOT NULL AS skip_next, timers.skip_until, timers.next_at, live.number AS live_number
  FROM jobs
  JOIN timers ON timers.job_id = jobs.id
  LEFT JOIN runs AS live ON live.id = timers.live_run_id
  LEFT JOIN principals ON principals.id::text = jobs.status_by
 WHERE jobs.id = %(job_id)s;

-- name: job_exists
SELECT EXISTS (SELECT FROM jobs WHERE id = %(job_id)s AND purged_at IS NULL
                  AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s));

-- name: load_names
SELECT id, name FROM jobs WHERE id = ANY (%(job_ids)s) AND purged_at IS NULL;

-- name: list_freezes
-- Freezes of the workspace that end after `since`, future ones included.
SELECT {columns}
  FROM freezes
 WHERE workspace_id = %(workspace_id)s AND (end_at IS NULL OR end_at > %(since)s)
 ORDER BY start_at;

-- name: list_freeze_authors
SELECT freezes.id, COALESCE(principals.name, freezes.created_by)
  FROM freezes
  LEFT JOIN principals ON principals.id::text = freezes.created_by
 WHERE freezes.workspace_id = %(workspace_id)s AND (freezes.end_at IS NULL OR freezes.end_at > %(since)s);

-- name: find_blocking
-- The newest run before this record that was not a skip. Relies on runs_newest_of_a_job.
SELECT id FROM runs
 WHERE job_id = %(job_id)s AND number < %(number)s AND status IS DISTINCT FROM 'skipped'
   AND planned_for <= %(planned_for)s AND planned_for > %(since)s
 ORDER BY planned_for DESC, id DESC LIMIT 1;

-- name: load_ready_position
-- Counts the runs of its workspace that a claim takes before it, from its queue or for its target, up to `most`. Relies on
-- ready_to_claim and ready_for_a_target.
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

-- name: load_waiting_position
-- Runs that wait for their turn are ordered within their job; those at a limit within their workspace, by priority first.
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

-- name: list_limits
SELECT key, cap, in_use FROM limits WHERE workspace_id = %(workspace_id)s AND key = ANY (%(keys)s) ORDER BY key;

-- name: list_alive_workers
-- Row-level security limits the counted leases to the workspace.
SELECT id, name, queues, types, is_draining, host_id, capacity, running_count,
       (SELECT count(*) FROM leases WHERE leases.worker_id = workers.id) AS held
  FROM workers WHERE alive_until >= %(now)s ORDER BY name, id;

-- name: list_running
-- Runs that these workers hold, the oldest lease first. Row-level security leaves out those of other workspaces.
SELECT jobs.name AS job, runs.number, workers.name AS worker, leases.leased_at
  FROM leases
  JOIN workers ON workers.id = leases.worker_id
  JOIN runs ON runs.id = leases.run_id
  JOIN jobs ON jobs.id = leases.job_id
 WHERE leases.workspace_id = %(workspace_id)s AND leases.worker_id = ANY (%(worker_ids)s)
   AND (%(owner_id)s::uuid IS NULL OR jobs.owner_id = %(owner_id)s)
 ORDER BY leases.leased_at, leases.run_id
 LIMIT %(limit)s;

-- name: load_holder
-- The worker that holds a running attempt, and the end of its time: its deadline, or the end of its silence if that is earlier.
SELECT COALESCE(names.name, leases.worker_id::text) AS name, LEAST(workers.alive_until, leases.deadline_at) AS until,
       COALESCE(workers.alive_until < %(now)s, true) AS is_silent
  FROM leases
  LEFT JOIN workers ON workers.id = leases.worker_id
  LEFT JOIN worker_names AS names ON names.id = leases.worker_id
 WHERE leases.run_id = %(run_id)s;
