-- Freezes that begin later begin at their instant: until everything that could start under one is in line, nothing of its workspace
-- is claimed.
ALTER TABLE freezes ADD COLUMN is_to_begin boolean NOT NULL DEFAULT false;
COMMENT ON COLUMN freezes.is_to_begin IS 'It was asked for ahead of its start, and what could start under it is not yet put in line.';
CREATE INDEX freezes_to_begin ON freezes (workspace_id) WHERE is_to_begin;


-- A long history is purged piece by piece. The job is gone for everybody as soon as it is marked; the janitor takes away the rest.
ALTER TABLE jobs ADD COLUMN purged_at timestamptz;
COMMENT ON COLUMN jobs.purged_at IS 'Set while what is left of its history is being removed. Nobody sees such a job.';
CREATE INDEX jobs_to_purge ON jobs (purged_at) WHERE purged_at IS NOT NULL;
