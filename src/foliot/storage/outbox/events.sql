-- name: watch
-- A watch that has lapsed, or is about to while we renew it, begins anew: who listened before it has missed something. So has one that
-- came here by a restore, where transactions have other numbers.
INSERT INTO watches (workspace_id, since, until)
VALUES (%(workspace_id)s, pg_snapshot_xmax(pg_current_snapshot())::text::bigint, %(until)s)
    ON CONFLICT (workspace_id) DO UPDATE
   SET until = GREATEST(watches.until, EXCLUDED.until),
       since = CASE WHEN watches.until < %(lapsed)s OR watches.since > EXCLUDED.since THEN EXCLUDED.since ELSE watches.since END
RETURNING since;

-- name: ends
-- Transactions below `safe` are over, and whoever sees one at `next` or above has begun after this look.
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS safe, pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next;

-- name: after
SELECT told.xid, told.seq, told.at, told.kind, told.object_id, told.job_id, told.run_id, told.attempt, told.actor,
       jobs.name AS job_name, runs.number, runs.planned_for, runs.skip_reason, runs.error ->> 'code' AS error_code
  FROM (SELECT events.xid, events.seq, events.at, events.kind, events.object_id, events.run_id, events.attempt, events.actor,
               COALESCE(events.job_id, (SELECT runs.job_id FROM runs WHERE runs.id = events.run_id)) AS job_id
          FROM events
         WHERE workspace_id = %(workspace_id)s AND (xid, seq) > (%(xid)s, %(seq)s) AND xid < %(safe)s
           AND (%(kinds)s::text[] IS NULL OR kind = ANY (%(kinds)s) OR split_part(kind, '.', 1) = ANY (%(kinds)s))
           AND (%(job_id)s::uuid IS NULL
                OR COALESCE(events.job_id, (SELECT runs.job_id FROM runs WHERE runs.id = events.run_id)) = %(job_id)s)
           AND (%(owner_id)s::uuid IS NULL
                OR EXISTS (SELECT FROM jobs WHERE owner_id = %(owner_id)s
                              AND jobs.id = COALESCE(events.job_id, (SELECT runs.job_id FROM runs WHERE runs.id = events.run_id))))
         ORDER BY xid, seq
         LIMIT %(limit)s) AS told
  LEFT JOIN jobs ON jobs.id = told.job_id
  LEFT JOIN runs ON runs.id = told.run_id
 ORDER BY told.xid, told.seq;

-- name: prune
-- The oldest of each workspace that are too old. The watch says from where on nothing is missing. Rows with numbers that no transaction
-- has had yet come from before a restore.
WITH old AS (
    SELECT oldest.workspace_id, oldest.xid, oldest.seq
      FROM watches
     CROSS JOIN LATERAL (SELECT events.workspace_id, xid, seq, at FROM events WHERE events.workspace_id = watches.workspace_id
                          ORDER BY xid, seq LIMIT %(limit)s) AS oldest
     WHERE oldest.at < %(before)s OR oldest.xid >= pg_snapshot_xmax(pg_current_snapshot())::text::bigint),
gone AS (
    DELETE FROM events USING old
     WHERE events.workspace_id = old.workspace_id AND events.xid = old.xid AND events.seq = old.seq
 RETURNING events.workspace_id, events.xid),
moved AS (
    UPDATE watches SET since = GREATEST(watches.since, told.xid + 1)
      FROM (SELECT workspace_id, max(xid) AS xid FROM gone GROUP BY workspace_id) AS told
     WHERE watches.workspace_id = told.workspace_id AND told.xid < pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
SELECT count(*) AS gone FROM gone;

-- name: forget
DELETE FROM watches
 WHERE until < %(before)s AND NOT EXISTS (SELECT FROM events WHERE events.workspace_id = watches.workspace_id);
