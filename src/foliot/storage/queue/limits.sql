-- Limits on the number of running runs. Rows exist only where a cap is set; claims of a workspace without one do not read them.

-- name: lock
-- In the order of keys, as in every transaction. FOR UPDATE returns the newest version after a wait.
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

-- name: list_limits
-- With the number of waiting runs, counted from waiting_at_a_key and waiting_at_a_limit.
SELECT workspace_id, key, cap, in_use,
       CASE key WHEN '' THEN (SELECT count(*) FROM (SELECT FROM waiting WHERE waiting.workspace_id = limits.workspace_id
                                                       AND waits_for = 'limit' LIMIT %(most)s) AS counted)
       ELSE (SELECT count(*) FROM (SELECT FROM waiting WHERE waiting.workspace_id = limits.workspace_id AND waits_for = 'limit'
                                      AND concurrency_key = limits.key LIMIT %(most)s) AS counted) END AS waiting
  FROM limits
 WHERE workspace_id = %(workspace_id)s AND (%(key)s::text IS NULL OR key = %(key)s)
 ORDER BY key;

-- name: use
-- Never below zero: a cap may be younger than the leases that end under it. `recount` corrects it.
UPDATE limits SET in_use = GREATEST(0, limits.in_use + used.count)
  FROM unnest(%(workspace_ids)s::uuid[], %(keys)s::text[], %(counts)s::int[]) AS used (workspace_id, key, count)
 WHERE limits.workspace_id = used.workspace_id AND limits.key = used.key;

-- name: set
INSERT INTO limits (workspace_id, key, cap) VALUES (%(workspace_id)s, %(key)s, %(cap)s)
    ON CONFLICT (workspace_id, key) DO UPDATE SET cap = EXCLUDED.cap;

-- name: remove
DELETE FROM limits WHERE workspace_id = %(workspace_id)s AND key = %(key)s;

-- name: recount
-- The rows are locked, so no transaction is between writing a lease and counting it. One that has deleted a lease waits for the lock
-- to count it down; its lease is still visible here.
WITH leased AS MATERIALIZED (
    SELECT workspace_id, concurrency_key, count(*) AS runs FROM leases WHERE workspace_id = ANY (%(workspace_ids)s) AND type <> 'check_in'
     GROUP BY workspace_id, concurrency_key),
counted AS (
    SELECT requested.workspace_id, requested.key,
           COALESCE(sum(leased.runs) FILTER (WHERE requested.key = '' OR requested.key = leased.concurrency_key), 0) AS runs
      FROM unnest(%(workspace_ids)s::uuid[], %(keys)s::text[]) AS requested (workspace_id, key)
      LEFT JOIN leased USING (workspace_id)
     GROUP BY requested.workspace_id, requested.key)
UPDATE limits SET in_use = counted.runs
  FROM counted
 WHERE limits.workspace_id = counted.workspace_id AND limits.key = counted.key AND limits.in_use <> counted.runs;

-- name: count_free
-- Limits with free capacity and waiting runs. Some runs may be ready for it already; a claim sends the surplus back to waiting.
SELECT limits.workspace_id, limits.key, limits.cap - limits.in_use AS free
  FROM limits JOIN unnest(%(workspace_ids)s::uuid[], %(keys)s::text[]) AS requested (workspace_id, key) USING (workspace_id, key)
 WHERE limits.in_use < limits.cap
   AND EXISTS (SELECT FROM waiting WHERE waiting.workspace_id = limits.workspace_id AND waits_for = 'limit');
