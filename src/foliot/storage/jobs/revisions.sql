-- name: get
SELECT job_id, revision, schedule_rev, at, actor, note, definition
  FROM revisions
 WHERE job_id = %(job_id)s AND revision = %(revision)s;

-- name: find_in_force
-- Ordered by number, not by instant: of two edits at one instant the later is in force. Relies on the primary key.
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
