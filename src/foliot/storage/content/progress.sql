-- name: tell
-- What is no longer held under this fence has somebody else to speak for it.
UPDATE leases SET progress = told.progress
  FROM unnest(%(run_ids)s::uuid[], %(fences)s::bigint[], %(progresses)s::jsonb[]) AS told (run_id, fence, progress)
 WHERE leases.run_id = told.run_id AND leases.fence = told.fence;

-- name: of_runs
SELECT run_id, progress FROM leases WHERE run_id = ANY (%(run_ids)s) AND progress IS NOT NULL;
