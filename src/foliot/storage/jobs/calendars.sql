-- name: load
-- The named calendars, and those with a scope in these workspaces (calendars_with_a_scope). As text: equal text is read and prepared
-- once, and a tick loads the same calendars again and again.
SELECT workspace_id, id, (definition || jsonb_build_object('name', name))::text AS text FROM calendars
 WHERE id = ANY (%(ids)s) OR (workspace_id = ANY (%(workspace_ids)s) AND definition ? 'scope')
 ORDER BY id;

-- name: get
SELECT id, definition || jsonb_build_object('name', name) AS calendar, revision, created_at, updated_at,
       (SELECT count(*) FROM job_calendars WHERE job_calendars.calendar_id = calendars.id) AS users
  FROM calendars WHERE id = %(id)s;

-- name: page
SELECT id, definition || jsonb_build_object('name', name) AS calendar, revision, created_at, updated_at,
       (SELECT count(*) FROM job_calendars WHERE job_calendars.calendar_id = calendars.id) AS users
  FROM calendars WHERE (name, id) > (%(name)s, %(id)s) ORDER BY name, id LIMIT %(limit)s;

-- name: insert
INSERT INTO calendars (workspace_id, id, name, definition, created_at, updated_at)
VALUES (%(workspace_id)s, %(id)s, %(name)s, %(definition)s, %(now)s, %(now)s)
    ON CONFLICT ON CONSTRAINT calendars_name_is_taken DO NOTHING;

-- name: update
UPDATE calendars SET name = %(name)s, definition = %(definition)s, revision = revision + 1, updated_at = %(now)s
 WHERE id = %(id)s;

-- name: lock
SELECT id, definition || jsonb_build_object('name', name) AS calendar, revision, created_at, updated_at, 0::bigint AS users FROM calendars WHERE id = %(id)s FOR UPDATE;

-- name: delete
DELETE FROM calendars WHERE id = %(id)s;

-- name: list_users
-- The jobs that name it, and those in its scope or in `other_scope`. Without a scope, the second part reads no job.
SELECT job_calendars.job_id, jobs.name
  FROM job_calendars JOIN jobs ON jobs.id = job_calendars.job_id
 WHERE job_calendars.calendar_id = %(id)s AND job_calendars.job_id > %(after)s
   AND (%(owner_id)s::uuid IS NULL OR jobs.owner_id = %(owner_id)s)
 UNION
SELECT jobs.id, jobs.name
  FROM (SELECT definition -> 'scope' AS scope FROM calendars WHERE id = %(id)s AND %(by_scope)s AND definition ? 'scope'
         UNION ALL SELECT %(other_scope)s::jsonb WHERE %(other_scope)s::jsonb IS NOT NULL) AS scopes
  JOIN jobs ON calendar_covers(scopes.scope, jobs.type, jobs.queue, jobs.tags, jobs.definition -> 'spec' -> 'target')
 WHERE jobs.id > %(after)s AND jobs.status <> 'archived' AND (%(owner_id)s::uuid IS NULL OR jobs.owner_id = %(owner_id)s)
 ORDER BY 1 LIMIT %(limit)s;

-- name: lock_shared
-- KEY SHARE: transactions that plan jobs do not wait for each other; an edit or a deletion (FOR UPDATE) waits for them.
SELECT workspace_id, id, (definition || jsonb_build_object('name', name))::text AS text FROM calendars
 WHERE id = ANY (%(ids)s) OR definition ? 'scope' ORDER BY id FOR KEY SHARE;

-- name: count_scoped_rules
SELECT COALESCE(sum(jsonb_array_length(definition -> 'rules')), 0)::int FROM calendars WHERE definition ? 'scope';

-- name: unlink
DELETE FROM job_calendars WHERE job_id = %(job_id)s AND calendar_id <> ALL (%(ids)s);

-- name: link
INSERT INTO job_calendars (workspace_id, job_id, calendar_id)
SELECT %(workspace_id)s, %(job_id)s, calendar_id FROM unnest(%(ids)s::uuid[]) AS calendar_id
    ON CONFLICT DO NOTHING;

-- name: find_most_rules
-- Under the lock of the calendar: no job starts to use it meanwhile.
SELECT sum(jsonb_array_length(calendars.definition -> 'rules'))::int AS rules, jobs.name
  FROM job_calendars AS mine
  JOIN job_calendars AS every ON every.job_id = mine.job_id
  JOIN calendars ON calendars.id = every.calendar_id
  JOIN jobs ON jobs.id = mine.job_id
 WHERE mine.calendar_id = %(id)s
 GROUP BY jobs.id, jobs.name ORDER BY rules DESC, jobs.id LIMIT 1;
