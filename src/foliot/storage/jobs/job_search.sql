-- name: jobs
-- The page is cut before the rows and their timers are looked up. Naming the workspace beside its policy lets indexes that begin with
-- it serve. What stands in braces is put in by storage/jobs/job_search.py, from its own pieces.
WITH page AS MATERIALIZED ({page})
SELECT jobs.*, page.key::text AS key, timers.cursor_at, timers.next_at, timers.live, timers.waiting, timers.runs_created, timers.skip_next,
       timers.fire_count, timers.run_count, timers.success_count, timers.failure_count, timers.skip_count, timers.failures_in_a_row,
       timers.last_fire_at, timers.last_run_at, timers.last_run_id, timers.last_run_status, timers.last_error
  FROM page JOIN jobs ON jobs.id = page.id JOIN timers ON timers.job_id = page.id
 ORDER BY {page_order};

-- name: page
SELECT jobs.id, {key} AS key FROM jobs {join}
 WHERE jobs.workspace_id = %(workspace_id)s AND jobs.purged_at IS NULL AND {conditions}
 ORDER BY {order}
 LIMIT %(limit)s

-- name: page_of_two
-- Two walks in one order, each along an index of its own, and the first of both together.
SELECT id, key FROM (({one}) UNION ALL ({other})) AS walked ORDER BY key {way}, id {way} LIMIT %(limit)s

-- name: job_ids
SELECT jobs.id FROM jobs {join}
 WHERE jobs.workspace_id = %(workspace_id)s AND jobs.purged_at IS NULL AND {conditions}
 ORDER BY jobs.id
 LIMIT %(limit)s;

-- name: count_jobs
SELECT count(*) AS found
  FROM (SELECT FROM jobs {join} WHERE jobs.workspace_id = %(workspace_id)s AND jobs.purged_at IS NULL AND {conditions} LIMIT %(limit)s) AS counted;

-- name: owners
SELECT id, lower(name) AS name FROM principals WHERE workspace_id = %(workspace_id)s AND lower(name) = ANY (%(names)s);
