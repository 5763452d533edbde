-- Quiet hours follow the zone of the people whom a channel reaches; digests keep the recipients and quiet hours of their rules.
ALTER TABLE channels ADD COLUMN timezone text;
COMMENT ON COLUMN channels.timezone IS 'Of the people whom it reaches; NULL: quiet hours are in the zone of their rule.';
ALTER TABLE digest_entries ADD COLUMN recipients text[] NOT NULL DEFAULT '{}', ADD COLUMN due_at timestamptz;
COMMENT ON COLUMN digest_entries.due_at IS 'The end of the quiet hours that hold the message back; NULL without any.';
