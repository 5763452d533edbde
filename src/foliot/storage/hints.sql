-- name: notify
SELECT pg_notify(%(channel)s, %(word)s);
