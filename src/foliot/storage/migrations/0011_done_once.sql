-- What is done in pieces goes on where it stopped, and what is delivered twice is kept once.

ALTER TABLE idempotency_keys ADD COLUMN progress jsonb, ADD COLUMN moved_at timestamptz;
COMMENT ON COLUMN idempotency_keys.progress IS 'How far it came, where it is done in several transactions; written by each of them.';
COMMENT ON COLUMN idempotency_keys.moved_at IS 'When the last piece was done: from then on, not from its beginning, a request may be given up.';

ALTER TABLE logs ADD COLUMN fence bigint NOT NULL DEFAULT 0, ADD COLUMN written integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN logs.written IS 'How many lines have come from the newest holder of the run, by its own count; it may deliver some again.';
