-- Jobs that fail are few, and the console looks for them on its first page. A fire or an end writes to this index only while its job fails:
-- the column changes with a failure and with the success after it, and no other update touches it.
CREATE INDEX timers_failing ON timers (workspace_id, job_id) WHERE failures_in_a_row >= 1;
