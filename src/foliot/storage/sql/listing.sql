-- name: jobs
-- The page is cut before the timers are looked up. Naming the workspace beside its policy lets jobs_of_one_workspace serve.
WITH page AS MATERIALIZED (
    SELECT * FROM jobs
     WHERE workspace_id = %(workspace_id)s AND purged_at IS NULL
       AND (%(before)s::uuid IS NULL OR id < %(before)s)
       AND (%(statuses)s::text[] IS NOT NULL OR status <> 'archived')
       AND (%(statuses)s::text[] IS NULL OR status = ANY (%(statuses)s))
       AND (%(type)s::text IS NULL OR type = %(type)s)
       AND (%(queue)s::text IS NULL OR queue = %(queue)s)
       AND (%(tag)s::text IS NULL OR %(tag)s = ANY (tags))
       AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s)
     ORDER BY id DESC
     LIMIT %(limit)s)
SELECT page.*, timers.cursor_at, timers.next_at, timers.live, timers.waiting, timers.runs_created, timers.skip_next,
       timers.fire_count, timers.run_count, timers.success_count, timers.failure_count, timers.skip_count, timers.failures_in_a_row,
       timers.last_fire_at, timers.last_run_at, timers.last_run_id, timers.last_run_status, timers.last_error
  FROM page JOIN timers ON timers.job_id = page.id
 ORDER BY page.id DESC;
