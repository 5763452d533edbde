-- name: list_workspaces
SELECT workspace_id FROM event_feeds WHERE workspace_id > %(after)s ORDER BY workspace_id LIMIT %(limit)s;

-- name: get
SELECT xid, seq, renewed_at FROM event_feeds WHERE workspace_id = %(workspace_id)s;

-- name: lock
SELECT xid, seq, renewed_at FROM event_feeds WHERE workspace_id = %(workspace_id)s FOR UPDATE;

-- name: save
UPDATE event_feeds SET xid = %(xid)s, seq = %(seq)s, renewed_at = COALESCE(%(renewed_at)s, renewed_at) WHERE workspace_id = %(workspace_id)s;

-- name: add
-- Needed while a webhook channel names events or a rule names an event of every run.
INSERT INTO event_feeds (workspace_id)
SELECT %(workspace_id)s
 WHERE EXISTS (SELECT FROM channels WHERE workspace_id = %(workspace_id)s AND enabled AND kind = 'webhook' AND config ? 'events')
    OR EXISTS (SELECT FROM notification_rules WHERE workspace_id = %(workspace_id)s AND enabled
                  AND definition -> 'events' ?| ARRAY['run_succeeded', 'run_skipped'])
    ON CONFLICT DO NOTHING;

-- name: remove
DELETE FROM event_feeds
 WHERE workspace_id = %(workspace_id)s
   AND NOT EXISTS (SELECT FROM channels WHERE workspace_id = %(workspace_id)s AND enabled AND kind = 'webhook' AND config ? 'events')
   AND NOT EXISTS (SELECT FROM notification_rules WHERE workspace_id = %(workspace_id)s AND enabled
                      AND definition -> 'events' ?| ARRAY['run_succeeded', 'run_skipped']);

-- name: list_subscribers
SELECT id, ARRAY(SELECT jsonb_array_elements_text(config -> 'events')) AS events FROM channels
 WHERE workspace_id = %(workspace_id)s AND enabled AND disabled_at IS NULL AND kind = 'webhook' AND config ? 'events'
 ORDER BY id
   FOR UPDATE;
