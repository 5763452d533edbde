-- name: acquire
-- Two requests at once meet at the primary key: the second waits for the first and then finds its row. A key is taken over when
-- it has expired, or when its request is abandoned before it finished.
INSERT INTO idempotency_keys AS old (workspace_id, principal_id, key, fingerprint, holder_id, created_at)
VALUES (%(workspace_id)s, %(principal_id)s, %(key)s, %(fingerprint)s, %(holder_id)s, %(now)s)
    ON CONFLICT (workspace_id, principal_id, key) DO UPDATE
   SET fingerprint = EXCLUDED.fingerprint, holder_id = EXCLUDED.holder_id, created_at = EXCLUDED.created_at, progress_at = NULL, done_at = NULL,
       object_kind = NULL, object_id = NULL, status = NULL, headers = NULL, body = NULL,
       progress = CASE WHEN old.created_at > %(expired)s THEN old.progress END
 WHERE old.created_at <= %(expired)s
    OR (COALESCE(old.progress_at, old.created_at) <= %(abandoned)s AND old.done_at IS NULL AND old.status IS NULL
        AND old.fingerprint = EXCLUDED.fingerprint);

-- name: load_record
SELECT fingerprint, done_at, object_kind, object_id, status, headers, body
  FROM idempotency_keys
 WHERE workspace_id = %(workspace_id)s AND principal_id = %(principal_id)s AND key = %(key)s;

-- name: mark_done
-- A request may change several objects; the first one is recorded.
UPDATE idempotency_keys
   SET done_at = COALESCE(done_at, %(now)s), object_kind = COALESCE(object_kind, %(kind)s), object_id = COALESCE(object_id, %(id)s)
 WHERE holder_id = %(holder_id)s;

-- name: load_progress
SELECT progress FROM idempotency_keys WHERE holder_id = %(holder_id)s;

-- name: store_progress
UPDATE idempotency_keys SET progress = %(progress)s, progress_at = %(now)s WHERE holder_id = %(holder_id)s AND done_at IS NULL;

-- name: store_response
UPDATE idempotency_keys SET status = %(status)s, headers = %(headers)s, body = %(body)s WHERE holder_id = %(holder_id)s;

-- name: release
-- A request that has done a part keeps its row, so that the next request with the key takes it over and continues.
WITH partial AS (
    UPDATE idempotency_keys SET progress_at = '-infinity'
     WHERE holder_id = %(holder_id)s AND done_at IS NULL AND status IS NULL AND progress IS NOT NULL)
DELETE FROM idempotency_keys WHERE holder_id = %(holder_id)s AND done_at IS NULL AND status IS NULL AND progress IS NULL;

-- name: prune
-- Relies on idempotency_keys_oldest.
DELETE FROM idempotency_keys
 WHERE holder_id IN (SELECT holder_id FROM idempotency_keys WHERE created_at < %(before)s ORDER BY created_at LIMIT %(limit)s);
