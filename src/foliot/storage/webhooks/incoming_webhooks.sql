-- name: page
SELECT {columns}
  FROM incoming_webhooks JOIN jobs ON jobs.id = incoming_webhooks.job_id
 WHERE incoming_webhooks.workspace_id = %(workspace_id)s AND (incoming_webhooks.name, incoming_webhooks.id) > (%(name)s, %(id)s)
   AND (%(job_id)s::uuid IS NULL OR incoming_webhooks.job_id = %(job_id)s)
 ORDER BY incoming_webhooks.name, incoming_webhooks.id LIMIT %(limit)s;

-- name: get
SELECT {columns}
  FROM incoming_webhooks JOIN jobs ON jobs.id = incoming_webhooks.job_id
 WHERE incoming_webhooks.id = %(id)s;

-- name: lock
SELECT {columns}
  FROM incoming_webhooks JOIN jobs ON jobs.id = incoming_webhooks.job_id
 WHERE incoming_webhooks.id = %(id)s
   FOR UPDATE OF incoming_webhooks;

-- name: find_by_token
-- By the engine: the workspace of a caller without a key is not known yet.
SELECT workspace_id, id FROM incoming_webhooks WHERE token = %(token)s;

-- name: insert
INSERT INTO incoming_webhooks (workspace_id, id, job_id, name, kind, token, secret, old_secret, enabled, created_by, created_at, updated_at)
VALUES (%(workspace_id)s, %(id)s, %(job_id)s, %(name)s, %(kind)s, %(token)s, %(secret)s, %(old_secret)s, %(enabled)s, %(by)s, %(now)s, %(now)s)
    ON CONFLICT ON CONSTRAINT incoming_webhooks_name_is_taken DO NOTHING;

-- name: update
UPDATE incoming_webhooks
   SET name = %(name)s, secret = %(secret)s, old_secret = %(old_secret)s, enabled = %(enabled)s, revision = revision + 1, updated_at = %(now)s
 WHERE id = %(id)s;

-- name: set_token
UPDATE incoming_webhooks SET token = %(token)s, revision = revision + 1, updated_at = %(now)s WHERE id = %(id)s;

-- name: delete
DELETE FROM incoming_webhooks WHERE id = %(id)s;

-- name: count
SELECT count(*) FROM incoming_webhooks WHERE workspace_id = %(workspace_id)s;

-- name: record_call
UPDATE incoming_webhooks SET called_at = %(now)s WHERE id = %(id)s;

-- name: record_refusal
UPDATE incoming_webhooks SET refused_at = %(now)s, refusal = %(refusal)s WHERE id = %(id)s;

-- name: find_message
SELECT run_id FROM received_messages WHERE webhook_id = %(webhook_id)s AND message_id = %(message_id)s;

-- name: count_messages
-- Under the lock of the webhook: the count is exact, whatever node received them.
SELECT count(*) FROM received_messages WHERE webhook_id = %(webhook_id)s AND received_at > %(after)s;

-- name: insert_message
INSERT INTO received_messages (workspace_id, webhook_id, message_id, run_id, received_at)
VALUES (%(workspace_id)s, %(webhook_id)s, %(message_id)s, %(run_id)s, %(now)s);

-- name: prune_messages
DELETE FROM received_messages
 WHERE (webhook_id, message_id) IN (SELECT webhook_id, message_id FROM received_messages WHERE received_at < %(before)s ORDER BY received_at LIMIT %(limit)s);

-- name: find_open_run
-- The oldest run of a job that waits for its check-in. `ready` is searched by the queue of the job, which its rows always match.
SELECT run_id FROM ready
 WHERE ((target IS NULL AND queue = %(queue)s AND workspace_id = %(workspace_id)s) OR (target = %(target)s AND workspace_id = %(workspace_id)s))
   AND job_id = %(job_id)s AND available_at <= %(now)s
 ORDER BY available_at LIMIT 1;

-- name: find_lease
SELECT run_id, fence, worker_id FROM leases WHERE job_id = %(job_id)s ORDER BY leased_at LIMIT 1;

-- name: list_unreported
-- Runs whose check-in has not come in time. Relies on ready_for_check_in.
SELECT run_id, job_id FROM ready
 WHERE type = 'check_in' AND available_at <= %(now)s AND COALESCE(expires_at, available_at + %(within)s) <= %(now)s
 ORDER BY available_at LIMIT %(limit)s;

-- name: lock_unreported
-- Under the locks of their jobs' timers: a check-in that came first has taken its run.
SELECT run_id FROM ready
 WHERE run_id = ANY (%(run_ids)s) AND COALESCE(expires_at, available_at + %(within)s) <= %(now)s
   FOR UPDATE;
