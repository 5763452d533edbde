-- name: add
-- What attempts used, and the sums of their jobs and workspaces. One statement for a batch, under the locks of the jobs' timers; the rows
-- of a workspace are shared by all its jobs, so they are locked in the order of their key. RETURNING reads the locked row: two
-- transactions that add to one sum see each other. Days before today are read as of the snapshot: nothing is added to them any more.
WITH given AS MATERIALIZED (
    SELECT * FROM unnest(%(workspace_ids)s::uuid[], %(job_ids)s::uuid[], %(run_ids)s::uuid[], %(attempts)s::int[], %(units)s::text[],
                         %(amounts)s::numeric[]) AS given (workspace_id, job_id, run_id, attempt, unit, amount)),
of_runs AS (
    INSERT INTO run_usage AS known (workspace_id, run_id, attempt, unit, amount)
    SELECT workspace_id, run_id, attempt, unit, amount FROM given
        ON CONFLICT (run_id, attempt, unit) DO UPDATE SET amount = known.amount + EXCLUDED.amount),
added AS MATERIALIZED (
    SELECT workspace_id, subject_id, unit, sum(amount) AS amount
      FROM (SELECT workspace_id, job_id AS subject_id, unit, amount FROM given
             UNION ALL
            SELECT workspace_id, workspace_id, unit, amount FROM given) AS parts
     GROUP BY workspace_id, subject_id, unit),
counted AS (
    INSERT INTO usage_days AS known (workspace_id, subject_id, day, unit, amount)
    SELECT workspace_id, subject_id, %(today)s, unit, amount FROM added ORDER BY subject_id, unit
        ON CONFLICT (subject_id, unit, day) DO UPDATE SET amount = known.amount + EXCLUDED.amount
    RETURNING workspace_id, subject_id, unit, amount)
SELECT counted.workspace_id, counted.subject_id, counted.unit, added.amount AS added, counted.amount AS day,
       counted.amount + COALESCE((SELECT sum(before.amount) FROM usage_days AS before
                                   WHERE before.subject_id = counted.subject_id AND before.unit = counted.unit
                                     AND before.day >= %(month)s AND before.day < %(today)s), 0) AS month
  FROM counted JOIN added USING (subject_id, unit);

-- name: list_units
-- Few: `add` is never given more units of a workspace and day than are allowed.
SELECT subject_id, unit FROM usage_days WHERE subject_id = ANY (%(workspace_ids)s::uuid[]) AND day = %(today)s;

-- name: load_of_run
SELECT unit, sum(amount) FROM run_usage WHERE run_id = %(run_id)s GROUP BY unit ORDER BY unit;

-- name: list_sums
-- The sums of a workspace, a job or, for an agent, of its own jobs. At most 31 rows for each unit of a subject.
SELECT usage_days.subject_id, usage_days.unit, sum(usage_days.amount) AS amount,
       COALESCE(sum(usage_days.amount) FILTER (WHERE usage_days.day = %(today)s), 0) AS today
  FROM usage_days
 WHERE usage_days.subject_id = ANY (%(subject_ids)s::uuid[]) AND usage_days.day >= %(since)s AND usage_days.day < %(until)s
 GROUP BY usage_days.subject_id, usage_days.unit
 ORDER BY usage_days.subject_id, usage_days.unit;

-- name: list_days
SELECT day, unit, amount FROM usage_days
 WHERE subject_id = %(subject_id)s AND day >= %(since)s AND day < %(until)s
 ORDER BY day, unit;

-- name: list_jobs
-- The jobs that used most of a unit; of all units where none is named, ordered by the first. Relies on usage_days_of_a_workspace.
SELECT jobs.id, jobs.name, usage_days.unit, sum(usage_days.amount) AS amount
  FROM usage_days JOIN jobs ON jobs.id = usage_days.subject_id
 WHERE usage_days.workspace_id = %(workspace_id)s AND usage_days.day >= %(since)s AND usage_days.day < %(until)s
   AND (%(unit)s::text IS NULL OR usage_days.unit = %(unit)s) AND (%(job_id)s::uuid IS NULL OR jobs.id = %(job_id)s)
   AND (%(owner_id)s::uuid IS NULL OR jobs.owner_id = %(owner_id)s) AND jobs.purged_at IS NULL
 GROUP BY jobs.id, jobs.name, usage_days.unit
 ORDER BY usage_days.unit, amount DESC, jobs.id
 LIMIT %(limit)s;

-- name: share_budgets
-- Transactions that add usage share these locks and do not wait for each other; a change of budgets takes one alone. So the sums that it
-- reads are complete, and usage that waited for it is judged by the new budgets. A statement of its own: the next one sees the change.
SELECT pg_advisory_xact_lock_shared(hashtextextended('foliot.budgets:' || workspace_id, 0))
  FROM unnest(%(workspace_ids)s::uuid[]) AS workspace_id;

-- name: lock_budgets
SELECT pg_advisory_xact_lock(hashtextextended('foliot.budgets:' || %(workspace_id)s::uuid, 0));

-- name: list_budgets
SELECT workspace_id, unit, period, amount, warn_at, action FROM budgets
 WHERE workspace_id = ANY (%(workspace_ids)s::uuid[])
 ORDER BY workspace_id, unit, period;

-- name: replace_budgets
WITH new AS (
    SELECT * FROM unnest(%(units)s::text[], %(periods)s::text[], %(amounts)s::numeric[], %(warn_ats)s::float8[], %(actions)s::text[])
               AS new (unit, period, amount, warn_at, action)),
gone AS (
    DELETE FROM budgets WHERE workspace_id = %(workspace_id)s
       AND NOT EXISTS (SELECT FROM new WHERE new.unit = budgets.unit AND new.period = budgets.period))
INSERT INTO budgets (workspace_id, unit, period, amount, warn_at, action)
SELECT %(workspace_id)s, unit, period, amount, warn_at, action FROM new
    ON CONFLICT (workspace_id, unit, period) DO UPDATE
   SET amount = EXCLUDED.amount, warn_at = EXCLUDED.warn_at, action = EXCLUDED.action;
