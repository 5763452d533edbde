-- name: get
SELECT id, created_at, tzdata_version, held_at, held_reason, missed_choice, canary_key_id, canary FROM installation;

-- name: lock
-- One row that every node has: whoever holds it may do the things that happen once in the life of an installation.
SELECT id FROM installation FOR UPDATE;

-- name: set_tzdata_version
UPDATE installation SET tzdata_version = %(version)s;

-- name: set_canary
UPDATE installation SET canary_key_id = %(key_id)s, canary = %(canary)s;

-- name: hold
UPDATE installation SET held_at = %(now)s, held_reason = %(reason)s, missed_choice = NULL;

-- name: release
UPDATE installation SET held_at = NULL, held_reason = NULL, missed_choice = %(choice)s WHERE held_at IS NOT NULL;
