-- name: by_ids
SELECT id, name, definition FROM calendars WHERE id = ANY (%(ids)s);
