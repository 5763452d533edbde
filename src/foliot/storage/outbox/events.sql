-- name: watch
-- A watch that has lapsed, or is about to, starts again at the current transaction: earlier listeners have missed events. So does one
-- that came with a restore, where transaction ids start elsewhere.
INSERT INTO watches (workspace_id, since, until)
VALUES (%(workspace_id)s, pg_snapshot_xmax(pg_current_snapshot())::text::bigint, %(until)s)
    ON CONFLICT (workspace_id) DO UPDATE
   SET until = GREATEST(watches.until, EXCLUDED.until),
       since = CASE WHEN watches.until < %(lapsed)s OR watches.since > EXCLUDED.since THEN EXCLUDED.since ELSE watches.since END
RETURNING since;

-- name: load_bounds
SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS safe, pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next;

-- name: list_after
-- xid < safe: events of running transactions would appear behind the reader's position. Relies on the primary key.
SELECT page.xid AS "place.xid", page.seq AS "place.seq", page.at, page.kind, page.object_id::uuid AS object_id, page.job_id, page.run_id, page.attempt, page.actor,
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
         LIMIT %(limit)s) AS page
  LEFT JOIN jobs ON jobs.id = page.job_id
  LEFT JOIN runs ON runs.id = page.run_id
 ORDER BY page.xid, page.seq;

-- name: prune
-- Deletes the oldest events of each workspace and moves the start of its watch. Rows with transaction ids from the future come from
-- before a restore.
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
    UPDATE watches SET since = GREATEST(watches.since, deleted.xid + 1)
      FROM (SELECT workspace_id, max(xid) AS xid FROM gone GROUP BY workspace_id) AS deleted
     WHERE watches.workspace_id = deleted.workspace_id AND deleted.xid < pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
SELECT count(*) FROM gone;

-- name: prune_watches
DELETE FROM watches
 WHERE until < %(before)s AND NOT EXISTS (SELECT FROM events WHERE events.workspace_id = watches.workspace_id);
