-- Limits on running runs. A row exists only where a limit is set.

-- name: lock
-- In the order of keys, as everywhere. FOR UPDATE returns the newest version, also after waiting for a rival.
SELECT workspace_id, key, cap, in_use FROM limits
 WHERE workspace_id = ANY (%(workspace_ids)s) AND (key = '' OR key = ANY (%(keys)s))
 ORDER BY workspace_id, key
   FOR UPDATE;

-- name: lock_from
SELECT workspace_id, key, cap, in_use FROM limits
 WHERE (workspace_id, key) > (%(workspace_id)s, %(key)s)
 ORDER BY workspace_id, key
 LIMIT %(limit)s
   FOR UPDATE;

-- name: shown
-- With the number of waiting runs, counted along waiting_at_a_key and waiting_at_a_limit.
SELECT workspace_id, key, cap, in_use,
       CASE key WHEN '' THEN (SELECT count(*) FROM (SELECT FROM waiting WHERE waiting.workspace_id = limits.workspace_id
                                                       AND waits_for = 'limit' LIMIT %(most)s) AS counted)
       ELSE (SELECT count(*) FROM (SELECT FROM waiting WHERE waiting.workspace_id = limits.workspace_id AND waits_for = 'limit'
                                      AND concurrency_key = limits.key LIMIT %(most)s) AS counted) END AS waiting
  FROM limits
 WHERE workspace_id = %(workspace_id)s AND (%(key)s::text IS NULL OR key = %(key)s)
 ORDER BY key;

-- name: use
-- Never below zero: a limit may be younger than the leases that end under it. The recount corrects it.
UPDATE limits SET in_use = GREATEST(0, limits.in_use + used.count)
  FROM unnest(%(workspace_ids)s::uuid[], %(keys)s::text[], %(counts)s::int[]) AS used (workspace_id, key, count)
 WHERE limits.workspace_id = used.workspace_id AND limits.key = used.key;

-- name: set
INSERT INTO limits (workspace_id, key, cap) VALUES (%(workspace_id)s, %(key)s, %(cap)s)
    ON CONFLICT (workspace_id, key) DO UPDATE SET cap = EXCLUDED.cap;

-- name: remove
DELETE FROM limits WHERE workspace_id = %(workspace_id)s AND key = %(key)s;

-- name: recount
-- The rows are locked, so no transaction is between a lease and its count, except one that has ended a lease and waits for this lock to
-- count it down; its lease is still visible here.
WITH leased AS MATERIALIZED (
    SELECT workspace_id, concurrency_key, count(*) AS runs FROM leases WHERE workspace_id = ANY (%(workspace_ids)s)
     GROUP BY workspace_id, concurrency_key),
counted AS (
    SELECT asked.workspace_id, asked.key,
           COALESCE(sum(leased.runs) FILTER (WHERE asked.key = '' OR asked.key = leased.concurrency_key), 0) AS runs
      FROM unnest(%(workspace_ids)s::uuid[], %(keys)s::text[]) AS asked (workspace_id, key)
      LEFT JOIN leased USING (workspace_id)
     GROUP BY asked.workspace_id, asked.key)
UPDATE limits SET in_use = counted.runs
  FROM counted
 WHERE limits.workspace_id = counted.workspace_id AND limits.key = counted.key AND limits.in_use <> counted.runs;

-- name: free_permits
-- Limits with free permits that runs wait for. Some of those may be in `ready` already; a claim holds the ones that are too many.
SELECT limits.workspace_id, limits.key, limits.cap - limits.in_use AS free
  FROM limits JOIN unnest(%(workspace_ids)s::uuid[], %(keys)s::text[]) AS asked (workspace_id, key) USING (workspace_id, key)
 WHERE limits.in_use < limits.cap
   AND EXISTS (SELECT FROM waiting WHERE waiting.workspace_id = limits.workspace_id AND waits_for = 'limit');
