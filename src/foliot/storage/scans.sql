-- name: lock_position
-- SKIP LOCKED: no row means that another node runs this scan.
SELECT position, mark FROM scans WHERE name = %(name)s FOR UPDATE SKIP LOCKED;

-- name: store_position
UPDATE scans SET position = %(position)s, mark = COALESCE(%(mark)s, mark) WHERE name = %(name)s;
