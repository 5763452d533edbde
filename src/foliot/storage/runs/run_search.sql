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
