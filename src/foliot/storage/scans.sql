-- name: take
-- No row: another node is on this round, and one is enough.
SELECT position, mark FROM rounds WHERE name = %(name)s FOR UPDATE SKIP LOCKED;

-- name: leave
UPDATE rounds SET position = %(position)s, mark = COALESCE(%(mark)s, mark) WHERE name = %(name)s;
