-- name: list_all
SELECT id, name, definition, enabled FROM notification_rules WHERE workspace_id = %(workspace_id)s ORDER BY name LIMIT %(limit)s;

-- name: page
SELECT id AS "rule.id", name AS "rule.name", definition AS "rule.definition", enabled AS "rule.enabled", revision, created_at, updated_at
  FROM notification_rules
 WHERE workspace_id = %(workspace_id)s AND (name, id) > (%(name)s, %(id)s)
 ORDER BY name, id LIMIT %(limit)s;

-- name: get
SELECT id AS "rule.id", name AS "rule.name", definition AS "rule.definition", enabled AS "rule.enabled", revision, created_at, updated_at
  FROM notification_rules WHERE id = %(id)s;

-- name: lock
SELECT id AS "rule.id", name AS "rule.name", definition AS "rule.definition", enabled AS "rule.enabled", revision, created_at, updated_at
  FROM notification_rules WHERE id = %(id)s FOR UPDATE;

-- name: insert
INSERT INTO notification_rules (workspace_id, id, name, definition, enabled, created_at, updated_at)
VALUES (%(workspace_id)s, %(id)s, %(name)s, %(definition)s, %(enabled)s, %(now)s, %(now)s)
    ON CONFLICT ON CONSTRAINT notification_rules_name_is_taken DO NOTHING;

-- name: update
UPDATE notification_rules SET name = %(name)s, definition = %(definition)s, enabled = %(enabled)s, revision = revision + 1, updated_at = %(now)s
 WHERE id = %(id)s;

-- name: delete
DELETE FROM notification_rules WHERE id = %(id)s;

-- name: count
SELECT count(*) FROM notification_rules WHERE workspace_id = %(workspace_id)s;

-- name: list_users_of_channel
SELECT name FROM notification_rules WHERE workspace_id = %(workspace_id)s AND definition -> 'channels' ? %(channel_id)s ORDER BY name LIMIT %(limit)s;
