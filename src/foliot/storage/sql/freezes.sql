-- name: since
-- The freezes that touch the time from `since` to `now`: usually none.
SELECT workspace_id, id, scope, start_at, end_at, after, per_minute, running, reason
  FROM freezes
 WHERE start_at <= %(now)s AND (end_at IS NULL OR end_at > %(since)s);
