-- name: count_by_minute
-- Jobs of the workspace by the minute of their next time, within the hour around it. Relies on timers_due.
SELECT extract(minute FROM due_at)::int AS minute, count(*)::int AS jobs
  FROM (SELECT due_at FROM timers
         WHERE due_at >= %(start)s AND due_at < %(end)s AND workspace_id = %(workspace_id)s AND job_id <> %(job_id)s
         LIMIT %(most)s) AS near
 GROUP BY 1;

-- name: count_with_url
-- Relies on jobs_by_url.
SELECT count(*) FROM (SELECT FROM jobs
                       WHERE workspace_id = %(workspace_id)s AND type = 'http' AND status <> 'archived'
                         AND md5(definition #>> '{config,url}') = md5(%(url)s::text) AND id <> %(job_id)s
                       LIMIT %(most)s) AS same;

-- name: has_namesake
-- Relies on jobs_by_name.
SELECT EXISTS (SELECT FROM jobs
                WHERE workspace_id = %(workspace_id)s AND name = %(name)s AND id <> %(job_id)s AND status <> 'archived'
                  AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s));
