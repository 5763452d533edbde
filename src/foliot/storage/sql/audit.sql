-- name: append_many
INSERT INTO audit (workspace_id, id, at, actor, key_id, address, action, object_kind, object_id, before, after, request_id)
SELECT %(workspace_id)s, entry.id, %(now)s, %(actor)s, %(key_id)s, %(address)s, %(action)s, %(object_kind)s, entry.object_id,
       entry.before::jsonb, %(after)s, %(request_id)s
  FROM unnest(%(ids)s::uuid[], %(object_ids)s::text[], %(before)s::text[]) AS entry (id, object_id, before);

-- name: append
INSERT INTO audit (workspace_id, id, at, actor, key_id, address, action, object_kind, object_id, before, after, request_id)
VALUES (%(workspace_id)s, %(id)s, %(now)s, %(actor)s, %(key_id)s, %(address)s, %(action)s, %(object_kind)s, %(object_id)s,
        %(before)s, %(after)s, %(request_id)s);
