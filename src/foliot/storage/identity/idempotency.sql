-- name: claim
-- Two at once meet at the primary key: the second waits for the first and then finds it there.
INSERT INTO idempotency_keys AS held (workspace_id, principal_id, key, fingerprint, holder_id, created_at)
VALUES (%(workspace_id)s, %(principal_id)s, %(key)s, %(fingerprint)s, %(claim)s, %(now)s)
    ON CONFLICT (workspace_id, principal_id, key) DO UPDATE
   SET fingerprint = EXCLUDED.fingerprint, holder_id = EXCLUDED.holder_id, created_at = EXCLUDED.created_at, progress_at = NULL, done_at = NULL,
       object_kind = NULL, object_id = NULL, status = NULL, headers = NULL, body = NULL,
       progress = CASE WHEN held.created_at > %(forgotten)s THEN held.progress END
 WHERE held.created_at <= %(forgotten)s
    OR (COALESCE(held.progress_at, held.created_at) <= %(given_up)s AND held.done_at IS NULL AND held.status IS NULL
        AND held.fingerprint = EXCLUDED.fingerprint);

-- name: held
SELECT fingerprint, done_at, object_kind, object_id, status, headers, body
  FROM idempotency_keys
 WHERE workspace_id = %(workspace_id)s AND principal_id = %(principal_id)s AND key = %(key)s;

-- name: close
-- A request may do several things; the first is what it was about.
UPDATE idempotency_keys
   SET done_at = COALESCE(done_at, %(now)s), object_kind = COALESCE(object_kind, %(kind)s), object_id = COALESCE(object_id, %(id)s)
 WHERE holder_id = %(claim)s;

-- name: progress
SELECT progress FROM idempotency_keys WHERE holder_id = %(claim)s;

-- name: advance
UPDATE idempotency_keys SET progress = %(progress)s, progress_at = %(now)s WHERE holder_id = %(claim)s AND done_at IS NULL;

-- name: answered
UPDATE idempotency_keys SET status = %(status)s, headers = %(headers)s, body = %(body)s WHERE holder_id = %(claim)s;

-- name: release
-- With some of it done, the key stays, to be taken over by the next.
WITH begun AS (
    UPDATE idempotency_keys SET progress_at = '-infinity'
     WHERE holder_id = %(claim)s AND done_at IS NULL AND status IS NULL AND progress IS NOT NULL)
DELETE FROM idempotency_keys WHERE holder_id = %(claim)s AND done_at IS NULL AND status IS NULL AND progress IS NULL;

-- name: forget
DELETE FROM idempotency_keys
 WHERE holder_id IN (SELECT holder_id FROM idempotency_keys WHERE created_at < %(before)s ORDER BY created_at LIMIT %(limit)s);
