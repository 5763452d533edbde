-- name: get
SELECT job_id, revision, schedule_rev, at, actor, note, definition
  FROM revisions
 WHERE job_id = %(job_id)s AND revision = %(revision)s;

-- name: in_force
-- By number and not by instant: two edits may share one, and then the later holds.
SELECT job_id, revision, schedule_rev, at, actor, note, definition
  FROM revisions
 WHERE job_id = %(job_id)s AND at <= %(at)s
 ORDER BY revision DESC
 LIMIT 1;

-- name: page
SELECT job_id, revision, schedule_rev, at, actor, note, definition
  FROM revisions
 WHERE job_id = %(job_id)s AND (%(before)s::integer IS NULL OR revision < %(before)s)
 ORDER BY revision DESC
 LIMIT %(limit)s;
