-- name: lock
-- The quotas of these workspaces and of the members that own these jobs, with what is used today. FOR UPDATE in the order of keys:
-- two ticking nodes must not spend the same fire, nor deadlock. Most workspaces have no row, and then no job is read.
SELECT workspace_id, subject_id, per_day, CASE WHEN day = %(today)s THEN used ELSE 0 END AS used,
       closed_until IS NOT NULL AND closed_until > %(now)s AS is_closed
  FROM fire_quotas
 WHERE workspace_id = ANY (%(workspace_ids)s::uuid[]) AND (per_day IS NOT NULL OR closed_until > %(now)s)
 ORDER BY workspace_id, subject_id
   FOR UPDATE;

-- name: list_used_up
-- From the few quotas to the jobs: without a quota that is used up, no job is read.
WITH used_up AS MATERIALIZED (
    SELECT subject_id FROM fire_quotas
     WHERE workspace_id = %(workspace_id)s AND per_day <= CASE WHEN day = %(today)s THEN used ELSE 0 END
)
SELECT DISTINCT own.id
  FROM used_up
 CROSS JOIN LATERAL (SELECT id FROM jobs
                      WHERE id = ANY (%(job_ids)s::uuid[])
                        AND (used_up.subject_id = %(workspace_id)s OR owner_id = used_up.subject_id)
                     OFFSET 0) AS own;

-- name: owners
SELECT id, owner_id FROM jobs WHERE id = ANY (%(job_ids)s::uuid[]) AND owner_id IS NOT NULL;

-- name: spend
-- Needs the locks of `lock`.
UPDATE fire_quotas
   SET used = CASE WHEN day = %(today)s THEN used ELSE 0 END + spent.fires, day = %(today)s
  FROM unnest(%(workspace_ids)s::uuid[], %(subject_ids)s::uuid[], %(fires)s::int[]) AS spent (workspace_id, subject_id, fires)
 WHERE fire_quotas.workspace_id = spent.workspace_id AND fire_quotas.subject_id = spent.subject_id;

-- name: put
INSERT INTO fire_quotas (workspace_id, subject_id, per_day) VALUES (%(workspace_id)s, %(subject_id)s, %(per_day)s)
    ON CONFLICT (workspace_id, subject_id) DO UPDATE SET per_day = EXCLUDED.per_day;

-- name: remove
-- A workspace stays closed whatever becomes of its quota.
WITH kept AS (UPDATE fire_quotas SET per_day = NULL
               WHERE workspace_id = %(workspace_id)s AND subject_id = %(subject_id)s AND closed_until IS NOT NULL)
DELETE FROM fire_quotas WHERE workspace_id = %(workspace_id)s AND subject_id = %(subject_id)s AND closed_until IS NULL;

-- name: close
-- Never earlier than known: a budget that ends later may be used up as well.
INSERT INTO fire_quotas AS known (workspace_id, subject_id, closed_until) VALUES (%(workspace_id)s, %(workspace_id)s, %(until)s)
    ON CONFLICT (workspace_id, subject_id) DO UPDATE SET closed_until = EXCLUDED.closed_until
 WHERE known.closed_until IS NULL OR known.closed_until < EXCLUDED.closed_until;

-- name: set_closed_until
INSERT INTO fire_quotas AS known (workspace_id, subject_id, closed_until) VALUES (%(workspace_id)s, %(workspace_id)s, %(until)s)
    ON CONFLICT (workspace_id, subject_id) DO UPDATE SET closed_until = EXCLUDED.closed_until
 WHERE known.closed_until IS DISTINCT FROM EXCLUDED.closed_until;

-- name: load_closed_until
SELECT closed_until FROM fire_quotas WHERE workspace_id = %(workspace_id)s AND subject_id = workspace_id AND closed_until > %(now)s;
