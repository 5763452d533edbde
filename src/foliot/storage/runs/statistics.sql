-- name: write_totals
-- The common part of both roll-ups: adds the sums in `added` to the days of jobs and of workspaces. Sorted, so that two
-- transactions lock the days of workspaces in one order.
counted AS (
    INSERT INTO job_days AS known (workspace_id, job_id, day, records, runs, successes, failures, skips, seconds, lag_seconds)
    SELECT workspace_id, job_id, day, records, runs, successes, failures, skips, seconds, lag_seconds FROM added
        ON CONFLICT (job_id, day) DO UPDATE
       SET records = known.records + excluded.records, runs = known.runs + excluded.runs,
           successes = known.successes + excluded.successes, failures = known.failures + excluded.failures,
           skips = known.skips + excluded.skips, seconds = known.seconds + excluded.seconds,
           lag_seconds = known.lag_seconds + excluded.lag_seconds),
counted_by_workspace AS (
    INSERT INTO workspace_days AS known (workspace_id, day, records, runs, successes, failures, skips, seconds, lag_seconds)
    SELECT workspace_id, day, sum(records), sum(runs), sum(successes), sum(failures), sum(skips), sum(seconds), sum(lag_seconds)
      FROM added
     GROUP BY workspace_id, day
     ORDER BY workspace_id, day
        ON CONFLICT (workspace_id, day) DO UPDATE
       SET records = known.records + excluded.records, runs = known.runs + excluded.runs,
           successes = known.successes + excluded.successes, failures = known.failures + excluded.failures,
           skips = known.skips + excluded.skips, seconds = known.seconds + excluded.seconds,
           lag_seconds = known.lag_seconds + excluded.lag_seconds)

-- name: roll_up
-- Adds the next records, by id, to their days; open runs go to uncounted_runs. The same transaction advances the scan, so each
-- record is counted once, whatever dies in between.
WITH passed AS MATERIALIZED (
    SELECT workspace_id, id, job_id, status FROM runs
     WHERE id > %(after)s AND id < %(before)s
     ORDER BY id
     LIMIT %(limit)s),
added AS MATERIALIZED (
    SELECT workspace_id, job_id, day, count(*) AS records, sum(runs) AS runs, sum(successes) AS successes, sum(failures) AS failures,
           sum(skips) AS skips, COALESCE(sum(seconds), 0) AS seconds, COALESCE(sum(lag_seconds), 0) AS lag_seconds
      FROM run_counts
     WHERE id > %(after)s AND id <= (SELECT id FROM passed ORDER BY id DESC LIMIT 1)
     GROUP BY workspace_id, job_id, day),
{write_totals},
postponed AS (
    INSERT INTO uncounted_runs (workspace_id, run_id, job_id)
    SELECT workspace_id, id, job_id FROM passed WHERE status IS NULL)
SELECT count(*) AS count, (SELECT id FROM passed ORDER BY id DESC LIMIT 1) AS last FROM passed;

-- name: roll_up_uncounted
-- Runs that were open when the roll-up read them and have ended since. A run without a row was purged with its job.
WITH ended AS MATERIALIZED (
    SELECT uncounted_runs.run_id FROM uncounted_runs LEFT JOIN runs ON runs.id = uncounted_runs.run_id
     WHERE runs.id IS NULL OR runs.status IS NOT NULL
     LIMIT %(limit)s),
gone AS (DELETE FROM uncounted_runs USING ended WHERE uncounted_runs.run_id = ended.run_id),
added AS MATERIALIZED (
    SELECT workspace_id, job_id, day, count(*) AS records, sum(runs) AS runs, sum(successes) AS successes, sum(failures) AS failures,
           sum(skips) AS skips, COALESCE(sum(seconds), 0) AS seconds, COALESCE(sum(lag_seconds), 0) AS lag_seconds
      FROM run_counts JOIN ended ON run_counts.id = ended.run_id
     GROUP BY workspace_id, job_id, day),
{write_totals}
SELECT count(*) FROM ended;

-- name: load_roll_up_position
SELECT position FROM scans WHERE name = 'roll_up';

-- name: list_days
-- Three parts in one statement, so that they show one moment and no record is missed or counted twice: the totals already rolled up,
-- records not yet rolled up, and runs that were open when the roll-up read them. `rolled_to` is an earlier position of the
-- roll-up: it only rises, so the condition changes no result but tells the planner how few rows are left.
SELECT day, sum(records)::bigint AS records, sum(runs)::bigint AS runs, sum(successes)::bigint AS successes,
       sum(failures)::bigint AS failures, sum(skips)::bigint AS skips, sum(seconds) AS seconds, sum(lag_seconds) AS lag_seconds
  FROM (SELECT day, records, runs, successes, failures, skips, seconds, lag_seconds
          FROM {days}
         WHERE {of_days} AND day >= %(since)s
        UNION ALL
        SELECT day, 1, runs, successes, failures, skips, COALESCE(seconds, 0), COALESCE(lag_seconds, 0)
          FROM run_counts
         WHERE {of_counts} AND id > %(rolled_to)s AND id > (SELECT position FROM scans WHERE name = 'roll_up') AND day >= %(since)s
        UNION ALL
        SELECT day, 1, runs, successes, failures, skips, COALESCE(seconds, 0), COALESCE(lag_seconds, 0)
          FROM uncounted_runs JOIN run_counts ON run_counts.id = uncounted_runs.run_id
         WHERE {of_uncounted} AND day >= %(since)s) AS each
 GROUP BY day
 ORDER BY day;

-- name: load_timings
-- Of the newest attempted runs among the last `scan` records. Relies on runs_newest_of_a_job.
SELECT count(*) AS runs,
       percentile_disc(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY seconds) AS seconds,
       percentile_disc(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY lag_seconds) AS lag_seconds
  FROM (SELECT seconds, lag_seconds
          FROM (SELECT * FROM run_counts WHERE job_id = %(job_id)s ORDER BY planned_for DESC, id DESC LIMIT %(scan)s) AS newest
         WHERE runs = 1
         LIMIT %(most)s) AS attempted;

-- name: load_last_run
SELECT last_run_at, last_run_status FROM timers WHERE job_id = %(job_id)s AND last_run_at IS NOT NULL;

-- name: load_workspace_timings
-- Of the workspace's last records. OFFSET 0 separates the two steps: the ids come from runs_newest_of_a_workspace alone.
SELECT count(*) AS runs,
       percentile_disc(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY seconds) AS seconds,
       percentile_disc(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY lag_seconds) AS lag_seconds
  FROM (SELECT run.seconds, run.lag_seconds
          FROM (SELECT id FROM runs WHERE workspace_id = %(workspace_id)s ORDER BY id DESC LIMIT %(scan)s) AS newest
         CROSS JOIN LATERAL (SELECT * FROM run_counts WHERE run_counts.id = newest.id OFFSET 0) AS run
         WHERE run.runs = 1
           AND (%(owner_id)s::uuid IS NULL OR EXISTS (SELECT FROM jobs WHERE jobs.id = run.job_id AND jobs.owner_id = %(owner_id)s))
         ORDER BY newest.id DESC
         LIMIT %(most)s) AS attempted;

-- name: count_jobs_by_status
-- Purged jobs are archived: with purged_at checked for those alone, the others are counted from the index jobs_by_status alone.
SELECT status, count(*) FROM jobs
 WHERE workspace_id = %(workspace_id)s AND status <> 'archived' AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s)
 GROUP BY status
 UNION ALL
SELECT status, count(*) FROM jobs
 WHERE workspace_id = %(workspace_id)s AND status = 'archived' AND purged_at IS NULL
   AND (%(owner_id)s::uuid IS NULL OR owner_id = %(owner_id)s)
 GROUP BY status;

-- name: count_jobs_up_to
-- Each count stops at `most` and reads jobs_by_status alone: a workspace may have a hundred thousand active jobs. The range and the order
-- leave the planner no other index, whatever it believes of a status that is rare.
SELECT statuses.status, counted.jobs
  FROM unnest(%(statuses)s::text[]) AS statuses (status)
 CROSS JOIN LATERAL (SELECT count(*)::int AS jobs
                       FROM (SELECT FROM jobs
                              WHERE workspace_id = %(workspace_id)s AND jobs.status >= statuses.status AND jobs.status <= statuses.status
                              ORDER BY jobs.status, jobs.id LIMIT %(most)s) AS found) AS counted
 WHERE statuses.status <> 'archived'
 UNION ALL
SELECT 'archived', count(*)::int
  FROM (SELECT FROM jobs
         WHERE workspace_id = %(workspace_id)s AND status = 'archived' AND purged_at IS NULL
         LIMIT %(most)s) AS found;

-- name: count_open
-- Each count stops at `most`.
WITH own AS MATERIALIZED (SELECT id FROM jobs WHERE workspace_id = %(workspace_id)s AND owner_id = %(owner_id)s)
SELECT (SELECT count(*) FROM (SELECT FROM ready WHERE workspace_id = %(workspace_id)s
                                 AND (%(owner_id)s::uuid IS NULL OR job_id IN (SELECT id FROM own)) LIMIT %(most)s) AS counted) AS ready,
       (SELECT count(*) FROM (SELECT FROM waiting WHERE workspace_id = %(workspace_id)s
                                 AND (%(owner_id)s::uuid IS NULL OR job_id IN (SELECT id FROM own)) LIMIT %(most)s) AS counted) AS waiting,
       (SELECT count(*) FROM (SELECT FROM leases WHERE workspace_id = %(workspace_id)s
                                 AND (%(owner_id)s::uuid IS NULL OR job_id IN (SELECT id FROM own)) LIMIT %(most)s) AS counted) AS running,
       (SELECT count(*) FROM (SELECT FROM timers WHERE due_at < %(late_by)s AND workspace_id = %(workspace_id)s
                                 AND (%(owner_id)s::uuid IS NULL OR job_id IN (SELECT id FROM own)) LIMIT %(most)s) AS counted) AS late;

-- name: list_day_percentiles_of_job
-- One probe of runs_newest_of_a_job for each day, and a bounded number of records.
SELECT days.day::date AS day, percentile_disc(0.95) WITHIN GROUP (ORDER BY sampled.seconds) AS seconds,
       percentile_disc(0.95) WITHIN GROUP (ORDER BY sampled.lag_seconds) AS lag_seconds
  FROM generate_series(%(since)s::date, %(until)s::date, interval '1 day') AS days (day)
 CROSS JOIN LATERAL (SELECT runs, seconds, lag_seconds FROM run_counts
                      WHERE job_id = %(job_id)s AND planned_for >= days.day::timestamp AT TIME ZONE 'UTC'
                        AND planned_for < (days.day::timestamp + interval '1 day') AT TIME ZONE 'UTC'
                      ORDER BY planned_for DESC, id DESC LIMIT %(most)s) AS sampled
 WHERE sampled.runs = 1
 GROUP BY days.day
 ORDER BY days.day;

-- name: list_day_percentiles_of_workspace
-- A probe of runs_newest_of_a_workspace for each part of a day. Ids begin with the instant of creation.
SELECT slices.day, percentile_disc(0.95) WITHIN GROUP (ORDER BY sampled.seconds) AS seconds,
       percentile_disc(0.95) WITHIN GROUP (ORDER BY sampled.lag_seconds) AS lag_seconds
  FROM unnest(%(days)s::date[], %(lows)s::uuid[], %(highs)s::uuid[]) AS slices (day, low, high)
 CROSS JOIN LATERAL (SELECT runs, seconds, lag_seconds FROM run_counts
                      WHERE workspace_id = %(workspace_id)s AND id >= slices.low AND id < slices.high
                      ORDER BY id DESC LIMIT %(most)s) AS sampled
 WHERE sampled.runs = 1
 GROUP BY slices.day
 ORDER BY slices.day;
