-- name: insert_missing
INSERT INTO workspaces (id, slug, name, created_at) VALUES (%(id)s, %(slug)s, %(name)s, %(now)s)
ON CONFLICT ON CONSTRAINT workspaces_slug_is_taken DO NOTHING;

-- name: by_slug
SELECT id, slug, name, default_timezone, created_at, archived_at FROM workspaces WHERE slug = %(slug)s;

-- name: by_id
SELECT id, slug, name, default_timezone, created_at, archived_at FROM workspaces WHERE id = %(id)s;
