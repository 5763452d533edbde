-- name: describe
INSERT INTO job_types (workspace_id, name, description, config_schema, seen_at)
SELECT %(workspace_id)s::uuid, told.name, told.description, told.config_schema, %(now)s
  FROM unnest(%(names)s::text[], %(descriptions)s::text[], %(schemas)s::jsonb[]) AS told (name, description, config_schema)
 ORDER BY told.name
    ON CONFLICT ON CONSTRAINT job_types_name_is_unique
    DO UPDATE SET description = EXCLUDED.description, config_schema = EXCLUDED.config_schema, seen_at = EXCLUDED.seen_at;

-- name: forget_beyond
DELETE FROM job_types
 WHERE workspace_id = %(workspace_id)s
   AND name IN (SELECT name FROM job_types WHERE workspace_id = %(workspace_id)s ORDER BY seen_at DESC, name OFFSET %(most)s);

-- name: known
-- Those of the workspace before those that all share.
SELECT name, description, config_schema FROM job_types
 WHERE %(name)s::text IS NULL OR name = %(name)s
 ORDER BY name, workspace_id NULLS LAST
 LIMIT 1000;

-- name: off
SELECT type, reason, at FROM disabled_types ORDER BY type;

-- name: off_among
SELECT workspace_id, type FROM disabled_types WHERE workspace_id = ANY (%(workspace_ids)s);

-- name: to_let_go
-- Runs that wait for their type though it is switched on by now, or their job is of another one.
SELECT run_id, job_id FROM waiting
 WHERE waits_for = 'type' AND (%(workspace_id)s::uuid IS NULL OR workspace_id = %(workspace_id)s)
   AND NOT EXISTS (SELECT FROM disabled_types
                    WHERE disabled_types.workspace_id = waiting.workspace_id AND disabled_types.type = waiting.type)
 ORDER BY position LIMIT %(limit)s;

-- name: switch_off
INSERT INTO disabled_types (workspace_id, type, reason, at) VALUES (%(workspace_id)s, %(type)s, %(reason)s, %(now)s)
    ON CONFLICT (workspace_id, type) DO UPDATE SET reason = EXCLUDED.reason;

-- name: switch_on
DELETE FROM disabled_types WHERE type = %(type)s;
