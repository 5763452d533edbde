-- name: page
SELECT channels.id, channels.name AS "definition.name", kind AS "definition.kind", config AS "definition.config", receiver AS "definition.receiver",
       enabled AS "definition.enabled", timezone AS "definition.timezone", revision, created_at, updated_at, disabled_at, disabled_reason, failing_since, error, delivered_at,
       window_at, window_count, digest_at, refused.addresses AS refused
  FROM channels
 CROSS JOIN LATERAL (SELECT COALESCE(jsonb_agg(jsonb_build_object('address', address, 'reason', reason, 'at', at) ORDER BY address), '[]') AS addresses
                       FROM refused_addresses WHERE refused_addresses.channel_id = channels.id) AS refused
 WHERE workspace_id = %(workspace_id)s AND (name, id) > (%(name)s, %(id)s)
 ORDER BY name, id LIMIT %(limit)s;

-- name: get
SELECT channels.id, channels.name AS "definition.name", kind AS "definition.kind", config AS "definition.config", receiver AS "definition.receiver",
       enabled AS "definition.enabled", timezone AS "definition.timezone", revision, created_at, updated_at, disabled_at, disabled_reason, failing_since, error, delivered_at,
       window_at, window_count, digest_at, refused.addresses AS refused
  FROM channels
 CROSS JOIN LATERAL (SELECT COALESCE(jsonb_agg(jsonb_build_object('address', address, 'reason', reason, 'at', at) ORDER BY address), '[]') AS addresses
                       FROM refused_addresses WHERE refused_addresses.channel_id = channels.id) AS refused
 WHERE id = %(id)s;

-- name: lock
-- In the order of ids. A transaction that adds a delivery to a channel's threads, or ends one, holds this lock.
SELECT id FROM channels WHERE id = ANY (%(ids)s) ORDER BY id FOR UPDATE;

-- name: load_states
SELECT id, name, kind, window_at, window_count, digest_at, timezone FROM channels
 WHERE workspace_id = %(workspace_id)s AND enabled AND disabled_at IS NULL
 ORDER BY id
   FOR UPDATE;

-- name: list_existing
SELECT id FROM channels WHERE id = ANY (%(ids)s);

-- name: insert
INSERT INTO channels (workspace_id, id, name, kind, config, receiver, enabled, timezone, created_at, updated_at)
VALUES (%(workspace_id)s, %(id)s, %(name)s, %(kind)s, %(config)s, %(receiver)s, %(enabled)s, %(timezone)s, %(now)s, %(now)s)
    ON CONFLICT ON CONSTRAINT channels_name_is_taken DO NOTHING;

-- name: update
-- A change starts the channel again, whatever stopped it.
UPDATE channels
   SET name = %(name)s, kind = %(kind)s, config = %(config)s, receiver = %(receiver)s, enabled = %(enabled)s, timezone = %(timezone)s,
       revision = revision + 1,
       updated_at = %(now)s, disabled_at = NULL, disabled_reason = NULL, failing_since = NULL, error = NULL
 WHERE id = %(id)s;

-- name: delete_refused
DELETE FROM refused_addresses WHERE channel_id = %(id)s;

-- name: delete
DELETE FROM channels WHERE id = %(id)s;

-- name: save_states
UPDATE channels SET window_at = new.window_at, window_count = new.window_count, digest_at = new.digest_at
  FROM unnest(%(ids)s::uuid[], %(window_ats)s::timestamptz[], %(window_counts)s::int[], %(digest_ats)s::timestamptz[])
       AS new (id, window_at, window_count, digest_at)
 WHERE channels.id = new.id;

-- name: record_success
UPDATE channels SET delivered_at = %(now)s, failing_since = NULL, error = NULL WHERE id = %(id)s;

-- name: record_failure
UPDATE channels
   SET failing_since = COALESCE(failing_since, %(now)s), error = %(error)s,
       disabled_at = CASE WHEN %(disables)s THEN %(now)s ELSE disabled_at END,
       disabled_reason = CASE WHEN %(disables)s THEN %(error)s ELSE disabled_reason END
 WHERE id = %(id)s;

-- name: add_refused
INSERT INTO refused_addresses (workspace_id, channel_id, address, reason, at)
SELECT %(workspace_id)s, %(id)s, address, reason, %(now)s FROM unnest(%(addresses)s::text[], %(reasons)s::text[]) AS new (address, reason)
    ON CONFLICT (channel_id, address) DO UPDATE SET reason = EXCLUDED.reason, at = EXCLUDED.at;

-- name: insert_entries
INSERT INTO digest_entries (workspace_id, channel_id, incident_id, kind, job_name, fingerprint, error, failures, recipients, due_at, at)
SELECT %(workspace_id)s, channel_id, incident_id, kind, job_name, fingerprint, error, failures,
       ARRAY(SELECT jsonb_array_elements_text(recipients)), due_at, %(now)s
  FROM unnest(%(channel_ids)s::uuid[], %(incident_ids)s::uuid[], %(kinds)s::text[], %(job_names)s::text[], %(fingerprints)s::text[],
              %(errors)s::text[], %(failures)s::int[], %(recipients)s::jsonb[], %(due_ats)s::timestamptz[])
       AS new (channel_id, incident_id, kind, job_name, fingerprint, error, failures, recipients, due_at);

-- name: take_due_entries
-- Under the lock of the channel. The digest says how many there were; its text names the largest groups.
DELETE FROM digest_entries USING channels
 WHERE channels.id = digest_entries.channel_id AND channels.workspace_id = %(workspace_id)s AND channels.digest_at <= %(now)s
   AND channels.id = ANY (%(ids)s)
RETURNING digest_entries.channel_id, digest_entries.incident_id, digest_entries.recipients, digest_entries.due_at, digest_entries.kind AS "entry.kind", digest_entries.job_name AS "entry.job_name",
          digest_entries.fingerprint AS "entry.fingerprint", digest_entries.error AS "entry.error", digest_entries.failures AS "entry.failures",
          digest_entries.at AS "entry.at";
