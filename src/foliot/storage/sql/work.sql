-- name: load
-- What a worker needs to know of the runs it has claimed. Definitions are cold, so the claim itself joins nothing.
SELECT runs.id AS run_id, jobs.name, jobs.definition -> 'config' AS config, jobs.definition -> 'payload' AS payload, runs.input
  FROM runs JOIN jobs ON jobs.id = runs.job_id
 WHERE runs.id = ANY (%(run_ids)s);
