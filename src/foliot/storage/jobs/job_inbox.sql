-- name: list_unprocessed
-- Oldest first, by the index job_inbox_unprocessed. Not locked: `lock` decides in the workspace of the row.
SELECT workspace_id, id FROM job_inbox WHERE processed_at IS NULL ORDER BY created_at LIMIT %(limit)s;

-- name: lock
-- SKIP LOCKED: another node that creates this job at the moment records its result.
SELECT job, created_by FROM job_inbox WHERE id = %(id)s AND processed_at IS NULL FOR UPDATE SKIP LOCKED;

-- name: store_result
UPDATE job_inbox SET processed_at = %(now)s, job_id = %(job_id)s, error = %(error)s WHERE id = %(id)s AND processed_at IS NULL;

-- name: prune
DELETE FROM job_inbox WHERE processed_at < %(before)s;
