-- name: find_jobs
-- The page is cut before rows and timers are joined. The condition on workspace_id repeats the policy's, so that indexes that begin
-- with it are used. job_search.py fills the braces from fixed pieces of SQL.
WITH page AS MATERIALIZED ({page})
SELECT page.key::text AS key, {columns}
  FROM page JOIN jobs ON jobs.id = page.id JOIN timers ON timers.job_id = page.id
 ORDER BY {page_order};

-- name: page
SELECT jobs.id, {key} AS key FROM {source} {join}
 WHERE jobs.workspace_id = %(workspace_id)s AND jobs.purged_at IS NULL AND {conditions}
 ORDER BY {order}
 LIMIT %(limit)s

-- name: first_jobs
-- Relies on jobs_of_one_workspace.
(SELECT * FROM jobs WHERE workspace_id = %(workspace_id)s AND {is_after} ORDER BY {order} LIMIT {scanned}) AS jobs

-- name: merge_pages
-- Two scans in one order, each of an index of its own, merged.
SELECT id, key FROM (({one}) UNION ALL ({other})) AS merged ORDER BY key {direction}, id {direction} LIMIT %(limit)s

-- name: find_ids
SELECT jobs.id FROM jobs {join}
 WHERE jobs.workspace_id = %(workspace_id)s AND jobs.purged_at IS NULL AND {conditions}
 ORDER BY jobs.id
 LIMIT %(limit)s;

-- name: count_jobs
SELECT count(*)
  FROM (SELECT FROM jobs {join} WHERE jobs.workspace_id = %(workspace_id)s AND jobs.purged_at IS NULL AND {conditions} LIMIT %(limit)s) AS counted;

-- name: find_owners
SELECT lower(name), id FROM principals WHERE workspace_id = %(workspace_id)s AND lower(name) = ANY (%(names)s);
