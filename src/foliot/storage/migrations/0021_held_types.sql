-- Runs of a type that is switched off wait for it to be switched on again.

ALTER TABLE waiting DROP CONSTRAINT waiting_for_something_known;
ALTER TABLE waiting ADD CONSTRAINT waiting_for_something_known
    CHECK (waits_for IN ('turn', 'upstream', 'freeze', 'window', 'limit', 'type'));
CREATE INDEX waiting_for_a_type ON waiting (workspace_id, type, position) WHERE waits_for = 'type';
COMMENT ON TABLE switched_off IS 'Types whose planned times are skipped in a workspace, and whose runs are held, by its administrator''s choice.';
