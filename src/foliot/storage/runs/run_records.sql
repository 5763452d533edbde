-- name: find
SELECT workspace_id, id, job_id, status, trigger, planned_for, planned_key, fold, schedule_rev, planned_until, input
  FROM runs WHERE id = %(id)s;

-- name: known
SELECT id FROM runs WHERE id = ANY (%(run_ids)s);

-- name: recorded_between
-- The planned times of a job that have their record, gaps that reach into the range included. Runs that people, programs or upstream
-- jobs asked for stand for no planned time, and a run made again stands for one that is here already.
SELECT planned_for, planned_until, planned_key, fold, schedule_rev, trigger, status
  FROM runs
 WHERE job_id = %(job_id)s AND planned_for < %(end)s AND (planned_for >= %(start)s OR planned_until >= %(start)s)
   AND trigger IN ('schedule', 'backfill', 'import');

-- name: set_note
UPDATE runs SET note = %(note)s WHERE id = %(id)s AND status IS NULL;
