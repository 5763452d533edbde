-- Jobs in the order of their next runs: nearly all timers are due when their job runs next, and are found along timers_due. Those that
-- say otherwise are found here; a fire that leaves both the same writes nothing to it.
CREATE INDEX timers_apart ON timers (workspace_id, COALESCE(next_at, 'infinity'), job_id) WHERE due_at IS DISTINCT FROM next_at;
