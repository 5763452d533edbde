-- How much a worker has in hand, as it told with its last beat: whoever waits behind others' runs cannot count those.

ALTER TABLE workers ADD COLUMN in_hand integer NOT NULL DEFAULT 0;
COMMENT ON COLUMN workers.in_hand IS 'Runs of all workspaces; at most a beat old.';
