-- A calendar with a scope also applies to jobs that do not name it. `{}` is the whole workspace.

CREATE FUNCTION calendar_covers(scope jsonb, type text, queue text, tags text[], target jsonb) RETURNS boolean
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN COALESCE(scope = '{}'::jsonb, false) OR COALESCE(scope -> 'types' ? type, false)
           OR COALESCE(scope -> 'queues' ? queue, false) OR COALESCE(scope -> 'tags' ?| tags, false)
           OR COALESCE(target ->> 'kind' = 'host' AND scope -> 'hosts' ? (target ->> 'name'), false);
REVOKE ALL ON FUNCTION calendar_covers FROM PUBLIC;
GRANT EXECUTE ON FUNCTION calendar_covers TO foliot_app, foliot_engine;
CREATE INDEX calendars_with_a_scope ON calendars (workspace_id) WHERE definition ? 'scope';
