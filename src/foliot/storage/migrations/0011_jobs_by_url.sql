-- Warn the author of a job whose address many other jobs call: the count needs an index. The digest keeps long addresses short.
CREATE INDEX jobs_by_url ON jobs (workspace_id, md5(definition #>> '{config,url}')) WHERE type = 'http' AND status <> 'archived';
