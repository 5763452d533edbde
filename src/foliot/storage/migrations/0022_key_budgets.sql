-- What the keys of agents may do at most: jobs that the agent owns, and the shortest time between two planned times.
ALTER TABLE api_keys
    ADD COLUMN max_jobs integer CONSTRAINT api_keys_max_jobs_is_not_negative CHECK (max_jobs >= 0),
    ADD COLUMN min_interval integer CONSTRAINT api_keys_min_interval_is_positive CHECK (min_interval > 0);
COMMENT ON COLUMN api_keys.min_interval IS 'Seconds.';
