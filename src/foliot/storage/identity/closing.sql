-- name: open_jobs
SELECT id FROM jobs WHERE workspace_id = %(workspace_id)s AND status <> 'archived' ORDER BY id LIMIT %(limit)s;

-- name: halt
UPDATE timers SET due_at = 'infinity', next_at = NULL, version = version + 1
 WHERE job_id = ANY (%(job_ids)s::uuid[]);

-- name: leased
SELECT run_id, fence, worker_id FROM leases WHERE workspace_id = %(workspace_id)s AND job_id = ANY (%(job_ids)s::uuid[]);
