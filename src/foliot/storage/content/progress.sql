-- name: of_runs
SELECT run_id, progress FROM leases WHERE run_id = ANY (%(run_ids)s) AND progress IS NOT NULL;
