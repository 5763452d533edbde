-- Behind a cap, too, the more urgent goes first.

DROP INDEX waiting_at_a_limit;
DROP INDEX waiting_at_a_key;
CREATE INDEX waiting_at_a_limit ON waiting (workspace_id, priority, position) WHERE waits_for = 'limit';
CREATE INDEX waiting_at_a_key ON waiting (workspace_id, concurrency_key, priority, position) WHERE waits_for = 'limit' AND concurrency_key IS NOT NULL;
