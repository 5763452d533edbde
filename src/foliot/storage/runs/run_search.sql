-- name: runs
-- First the places: no more than `scan` records along an index, so that a filter which matches little costs little. What stands in braces
-- is put in by storage/runs/run_search.py, from its own pieces. Then each run by its key; OFFSET 0 keeps the two steps apart: together, the
-- planner may read a whole workspace to save a few lookups.
SELECT run.*
  FROM (SELECT runs.planned_for, runs.id
          FROM ({source}) AS runs {join}
         WHERE {conditions}
         ORDER BY {order}
         LIMIT %(limit)s) AS newest
 CROSS JOIN LATERAL (SELECT * FROM run_records WHERE run_records.id = newest.id OFFSET 0) AS run
 ORDER BY {newest_order};

-- name: floor
-- Where such a walk stops, when there is more behind it.
SELECT planned_for, id FROM ({source}) AS runs ORDER BY {order} OFFSET %(scan)s - 1 LIMIT 1;

-- name: of_job
-- Along runs_newest_of_a_job.
SELECT * FROM runs WHERE job_id = %(job_id)s AND {bounds} ORDER BY planned_for DESC, id DESC LIMIT %(scan)s

-- name: of_workspace
-- By id: ids begin with the instant their record was made. The ids come from runs_newest_of_a_workspace alone: walking the primary key
-- instead would pass through everything that all others did since a quiet workspace's last run.
SELECT * FROM runs WHERE workspace_id = %(workspace_id)s AND {bounds} ORDER BY id DESC LIMIT %(scan)s

-- name: of_workspace_until
-- Planned before an instant: what was recorded before it, and of what was recorded later that which is late. Along
-- runs_newest_of_a_workspace and runs_recorded_late.
SELECT * FROM (
    (SELECT * FROM runs WHERE workspace_id = %(workspace_id)s AND id < %(late_from)s AND {bounds} ORDER BY id DESC LIMIT %(scan)s)
    UNION ALL
    (SELECT * FROM runs WHERE workspace_id = %(workspace_id)s AND id >= %(late_from)s AND created_at - planned_for > interval '5 minutes'
                          AND planned_for < %(until)s AND {bounds} ORDER BY id DESC LIMIT %(scan)s)) AS walked
 ORDER BY id DESC LIMIT %(scan)s

-- name: of_workspace_open
-- What has not ended is in one of three small tables, however long ago it was recorded.
SELECT runs.* FROM ({open}) AS open JOIN runs ON runs.id = open.run_id WHERE {bounds} ORDER BY id DESC LIMIT %(scan)s

-- name: open
SELECT run_id FROM {table} WHERE workspace_id = %(workspace_id)s
