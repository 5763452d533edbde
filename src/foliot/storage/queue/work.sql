-- name: jobs
-- What a worker needs to know of the jobs whose runs it has claimed. Definitions are cold, so the claim itself joins nothing.
SELECT id, name, definition -> 'config', definition -> 'payload' FROM jobs WHERE id = ANY (%(job_ids)s::uuid[]);

-- name: inputs
SELECT id, input FROM runs WHERE id = ANY (%(run_ids)s::uuid[]) AND input IS NOT NULL;
