-- name: notify
SELECT pg_notify(%(channel)s, %(hint)s);
