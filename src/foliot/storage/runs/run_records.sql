-- name: find
SELECT workspace_id, id, job_id, status, trigger, planned_for, planned_key AS planned_local, fold, schedule_rev,
       planned_until, input
  FROM runs WHERE id = %(id)s;

-- name: list_workspaces
SELECT id, workspace_id FROM runs WHERE id = ANY (%(run_ids)s);

-- name: list_known
SELECT id FROM runs WHERE id = ANY (%(run_ids)s);

-- name: list_recorded
-- Planned times of a job that have a record, including gaps that reach into the range. Manual, API and dependency runs belong to no
-- planned time, and a retry belongs to one that is listed already. Relies on runs_newest_of_a_job and runs_gaps_of_a_job.
SELECT planned_for, planned_until, planned_key AS planned_local, fold, schedule_rev, trigger, COALESCE(status = 'skipped', false) AS is_skipped
  FROM runs
 WHERE job_id = %(job_id)s AND planned_for < %(end)s AND (planned_for >= %(start)s OR planned_until >= %(start)s)
   AND trigger IN ('schedule', 'backfill', 'import');

-- name: set_note
UPDATE runs SET note = %(note)s WHERE id = %(id)s AND status IS NULL;
