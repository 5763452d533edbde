-- name: get
SELECT id, created_at, tzdata_version, held_at, held_reason, missed_choice, canary_key_id, canary FROM installation;

-- name: get_held_reason
-- For requests of workspaces, which see nothing else of the row.
SELECT held_reason FROM installation;

-- name: lock
-- Serialises the steps that happen once in an installation, between nodes that start together.
SELECT id FROM installation FOR UPDATE;

-- name: set_tzdata_version
UPDATE installation SET tzdata_version = %(version)s;

-- name: set_canary
UPDATE installation SET canary_key_id = %(key_id)s, canary = %(canary)s;

-- name: hold
UPDATE installation SET held_at = %(now)s, held_reason = %(reason)s, missed_choice = NULL;

-- name: release
UPDATE installation SET held_at = NULL, held_reason = NULL, missed_choice = %(choice)s WHERE held_at IS NOT NULL;
