-- name: take
-- No row: another node is walking, and one walker is enough.
SELECT position, mark FROM sweeps WHERE name = %(name)s FOR UPDATE SKIP LOCKED;

-- name: leave
UPDATE sweeps SET position = %(position)s, mark = COALESCE(%(mark)s, mark) WHERE name = %(name)s;
