-- Which key made which, so that one which has leaked can be ended together with all that came of it.

ALTER TABLE api_keys ADD COLUMN made_by uuid;
COMMENT ON COLUMN api_keys.made_by IS 'The key it was made with, maybe one of the installation; NULL where none was needed, and before this was kept.';
CREATE INDEX api_keys_made_by_another ON api_keys (made_by) WHERE made_by IS NOT NULL;

-- A key of the installation makes keys in many workspaces. To find these, a transaction names their makers, and sees what those made.
CREATE POLICY api_keys_of_named_makers ON api_keys FOR SELECT TO foliot_app
    USING (current_setting('foliot.system', true) = 'on'
           AND made_by = ANY (NULLIF(current_setting('foliot.makers', true), '')::uuid[]));
