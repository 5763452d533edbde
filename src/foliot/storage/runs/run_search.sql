-- name: find_runs
-- First the ids: at most `scan` records of an index, so that a filter with few matches costs little. Then each run by its key. OFFSET 0
-- separates the two steps: merged, the planner may read a whole workspace to save a few lookups. run_search.py fills the braces from
-- fixed pieces of SQL.
SELECT run.*
  FROM (SELECT runs.planned_for, runs.id
          FROM ({source}) AS runs {join}
         WHERE {conditions}
         ORDER BY {order}
         LIMIT %(limit)s) AS newest
 CROSS JOIN LATERAL (SELECT * FROM run_records WHERE run_records.id = newest.id OFFSET 0) AS run
 ORDER BY {newest_order};

-- name: find_scan_end
-- The last record of a scan that reached its bound.
SELECT planned_for, id FROM ({source}) AS runs ORDER BY {order} OFFSET %(scan)s - 1 LIMIT 1;

-- name: scan_job
-- Relies on runs_newest_of_a_job.
SELECT * FROM runs WHERE job_id = %(job_id)s AND {bounds} ORDER BY planned_for DESC, id DESC LIMIT %(scan)s

-- name: scan_workspace
-- Ids begin with the instant of creation. Relies on runs_newest_of_a_workspace: a scan of the primary key would read the runs of all
-- other workspaces since a quiet workspace's last run.
SELECT * FROM runs WHERE workspace_id = %(workspace_id)s AND {bounds} ORDER BY id DESC LIMIT %(scan)s

-- name: scan_workspace_until
-- Planned before an instant: records made before it, and later records of late runs. Relies on runs_newest_of_a_workspace and
-- runs_recorded_late.
SELECT * FROM (
    (SELECT * FROM runs WHERE workspace_id = %(workspace_id)s AND id < %(late_from)s AND {bounds} ORDER BY id DESC LIMIT %(scan)s)
    UNION ALL
    (SELECT * FROM runs WHERE workspace_id = %(workspace_id)s AND id >= %(late_from)s AND created_at - planned_for > interval '5 minutes'
                          AND planned_for < %(until)s AND {bounds} ORDER BY id DESC LIMIT %(scan)s)) AS merged
 ORDER BY id DESC LIMIT %(scan)s

-- name: scan_workspace_open
-- An open run is in one of three small tables, however old it is.
SELECT runs.* FROM ({open}) AS open JOIN runs ON runs.id = open.run_id WHERE {bounds} ORDER BY id DESC LIMIT %(scan)s

-- name: list_open
SELECT run_id FROM {table} WHERE workspace_id = %(workspace_id)s

-- name: summarize_runs
-- Counts over the same bounded scan as a page: by bucket and status, by error, and in all. The buckets are as narrow as `most` allows.
-- LEFT JOIN: without a match there is still the row of the whole.
WITH scanned AS MATERIALIZED (
    SELECT runs.id, runs.job_id, runs.planned_for, runs.created_at, {status} AS status, ({conditions}) AS is_match,
           CASE WHEN ({conditions}) AND runs.error IS NOT NULL THEN {fingerprint} END AS fingerprint
      FROM ({source}) AS runs {join}),
span AS MATERIALIZED (
    SELECT count(*) AS scanned, min({place}) AS reached,
           COALESCE(%(low)s::timestamptz, CASE WHEN count(*) < %(scan)s THEN min(planned_for) FILTER (WHERE is_match) ELSE min({place}) END,
                    %(high)s::timestamptz - interval '1 hour') AS low
      FROM scanned),
scale AS MATERIALIZED (
    SELECT span.*, COALESCE((SELECT min(width) FROM unnest(%(widths)s::int[]) AS width
                              WHERE extract(epoch FROM %(high)s::timestamptz - span.low) / width < %(most)s),
                            (%(widths)s::int[])[array_length(%(widths)s::int[], 1)]) AS width
      FROM span)
SELECT max(scale.low) AS low, max(scale.width) AS width, max(scale.scanned) AS scanned, max(scale.reached) AS reached,
       placed.bucket, placed.status, placed.fingerprint, count(placed.id) AS runs, count(DISTINCT placed.job_id) AS jobs,
       min(placed.planned_for) AS first_at, max(placed.planned_for) AS last_at, max(placed.id::text)::uuid AS newest
  FROM scale
  LEFT JOIN LATERAL (SELECT scanned.*, date_bin(make_interval(secs => scale.width), scanned.planned_for, 'epoch') AS bucket
                       FROM scanned WHERE scanned.is_match) AS placed ON true
 GROUP BY GROUPING SETS ((placed.bucket, placed.status), (placed.fingerprint), ());

-- name: load_errors
SELECT runs.id, runs.error ->> 'code' AS code, runs.error ->> 'message' AS message, runs.job_id, jobs.name AS job_name
  FROM runs LEFT JOIN jobs ON jobs.id = runs.job_id
 WHERE runs.id = ANY (%(ids)s) AND runs.error IS NOT NULL;
