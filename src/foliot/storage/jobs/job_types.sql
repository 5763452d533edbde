-- name: describe
INSERT INTO job_types (workspace_id, name, description, config_schema, seen_at)
SELECT %(workspace_id)s::uuid, described.name, described.description, described.config_schema, %(now)s
  FROM unnest(%(names)s::text[], %(descriptions)s::text[], %(schemas)s::jsonb[]) AS described (name, description, config_schema)
 ORDER BY described.name
    ON CONFLICT ON CONSTRAINT job_types_name_is_unique
    DO UPDATE SET description = EXCLUDED.description, config_schema = EXCLUDED.config_schema, seen_at = EXCLUDED.seen_at;

-- name: forget_beyond
DELETE FROM job_types
 WHERE workspace_id = %(workspace_id)s
   AND name IN (SELECT name FROM job_types WHERE workspace_id = %(workspace_id)s ORDER BY seen_at DESC, name OFFSET %(most)s);

-- name: list_known
-- The workspace's own descriptions come before the shared ones.
SELECT name, description, config_schema FROM job_types
 WHERE %(name)s::text IS NULL OR name = %(name)s
 ORDER BY name, workspace_id NULLS LAST
 LIMIT 1000;

-- name: list_disabled
SELECT type, reason, at FROM disabled_types ORDER BY type;

-- name: list_disabled_in
SELECT workspace_id, type FROM disabled_types WHERE workspace_id = ANY (%(workspace_ids)s);

-- name: list_released_runs
-- Runs that wait for a type that is enabled by now, or that is no longer their job's. Relies on waiting_for_a_type.
SELECT run_id, job_id FROM waiting
 WHERE waits_for = 'type' AND (%(workspace_id)s::uuid IS NULL OR workspace_id = %(workspace_id)s)
   AND NOT EXISTS (SELECT FROM disabled_types
                    WHERE disabled_types.workspace_id = waiting.workspace_id AND disabled_types.type = waiting.type)
 ORDER BY position LIMIT %(limit)s;

-- name: disable
INSERT INTO disabled_types (workspace_id, type, reason, at) VALUES (%(workspace_id)s, %(type)s, %(reason)s, %(now)s)
    ON CONFLICT (workspace_id, type) DO UPDATE SET reason = EXCLUDED.reason;

-- name: enable
DELETE FROM disabled_types WHERE type = %(type)s;
