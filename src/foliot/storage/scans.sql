-- name: take
-- No row: another node is on this round, and one is enough.
SELECT position, mark FROM scans WHERE name = %(name)s FOR UPDATE SKIP LOCKED;

-- name: leave
UPDATE scans SET position = %(position)s, mark = COALESCE(%(mark)s, mark) WHERE name = %(name)s;
