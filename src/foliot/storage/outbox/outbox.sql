-- name: put
-- Under the lock of the ordering_key: behind others that have not ended it waits, without being looked at, until it is the first.
INSERT INTO outbox (workspace_id, id, kind, ordering_key, position, receiver, due_at, sending_since, created_at)
SELECT %(workspace_id)s, %(id)s, %(kind)s, %(ordering_key)s, %(position)s, %(receiver)s,
       CASE WHEN EXISTS (SELECT FROM outbox WHERE ordering_key = %(ordering_key)s AND ended_at IS NULL) THEN 'infinity' ELSE %(now)s::timestamptz END,
       %(now)s, %(now)s;

-- name: take
-- Workspace by workspace, so that a full one costs the others nothing; from each no more than its share, and of that for each receiver
-- no more than its own. A hand goes to the workspace that has the fewest. What is being sent is not due before its lease ends. SKIP LOCKED
-- lets rivals pass each other, and who comes second finds the row no longer due.
WITH RECURSIVE walked AS (
    (SELECT workspace_id FROM outbox WHERE ended_at IS NULL ORDER BY workspace_id LIMIT 1)
    UNION ALL
    SELECT (SELECT outbox.workspace_id FROM outbox
             WHERE outbox.ended_at IS NULL AND outbox.workspace_id > walked.workspace_id
             ORDER BY outbox.workspace_id LIMIT 1)
      FROM walked WHERE walked.workspace_id IS NOT NULL),
sending AS (
    SELECT * FROM unnest(%(workspaces)s::uuid[], %(receivers)s::text[], %(counts)s::int[]) AS sending (workspace_id, receiver, count)),
busy AS (SELECT workspace_id, sum(count) AS count FROM sending GROUP BY workspace_id),
near AS (
    SELECT walked.workspace_id, COALESCE(busy.count, 0) AS busy, first.id, first.receiver, first.due_at
      FROM walked LEFT JOIN busy USING (workspace_id)
     CROSS JOIN LATERAL (
           SELECT outbox.id, outbox.receiver, outbox.due_at FROM outbox
            WHERE outbox.workspace_id = walked.workspace_id AND outbox.ended_at IS NULL AND outbox.due_at <= %(now)s
              AND NOT EXISTS (SELECT FROM sending
                               WHERE sending.workspace_id = outbox.workspace_id AND sending.receiver = outbox.receiver
                                 AND sending.count >= %(of_one_receiver)s)
              AND NOT EXISTS (SELECT FROM outbox AS earlier
                               WHERE earlier.ordering_key = outbox.ordering_key AND earlier.ended_at IS NULL AND earlier.position < outbox.position)
            ORDER BY outbox.due_at
            LIMIT GREATEST(0, %(of_one_workspace)s - COALESCE(busy.count, 0))) AS first),
shared AS (
    SELECT near.id, near.due_at,
           row_number() OVER (PARTITION BY near.workspace_id ORDER BY near.due_at, near.id) + near.busy AS turn,
           row_number() OVER (PARTITION BY near.workspace_id, near.receiver ORDER BY near.due_at, near.id)
               + COALESCE(sending.count, 0) AS of_receiver
      FROM near LEFT JOIN sending USING (workspace_id, receiver)),
taken AS MATERIALIZED (
    SELECT outbox.id
      FROM outbox JOIN shared ON shared.id = outbox.id
     WHERE shared.of_receiver <= %(of_one_receiver)s AND outbox.ended_at IS NULL AND outbox.due_at <= %(now)s
     ORDER BY shared.turn, shared.due_at
     LIMIT %(limit)s
       FOR UPDATE OF outbox SKIP LOCKED)
UPDATE outbox SET due_at = %(until)s, leased_until = %(until)s, fence = outbox.fence + 1, attempts = outbox.attempts + 1
  FROM taken WHERE outbox.id = taken.id
RETURNING outbox.workspace_id, outbox.id, outbox.kind, outbox.ordering_key, outbox.position, outbox.receiver, outbox.sending_since, outbox.attempts, outbox.fence;

-- name: next_due
-- What is due already waits for a free hand, and whoever has one looks by itself.
WITH RECURSIVE walked AS (
    (SELECT workspace_id FROM outbox WHERE ended_at IS NULL ORDER BY workspace_id LIMIT 1)
    UNION ALL
    SELECT (SELECT outbox.workspace_id FROM outbox
             WHERE outbox.ended_at IS NULL AND outbox.workspace_id > walked.workspace_id
             ORDER BY outbox.workspace_id LIMIT 1)
      FROM walked WHERE walked.workspace_id IS NOT NULL)
SELECT min(coming.due_at) AS due_at
  FROM walked
 CROSS JOIN LATERAL (
       SELECT outbox.due_at FROM outbox
        WHERE outbox.workspace_id = walked.workspace_id AND outbox.ended_at IS NULL AND outbox.due_at > %(now)s AND outbox.due_at < 'infinity'
        ORDER BY outbox.due_at LIMIT 1) AS coming;

-- name: end_one
UPDATE outbox SET ended_at = %(now)s, delivered = %(delivered)s, status = %(status)s, error = %(error)s, due_at = 'infinity',
       leased_until = NULL
 WHERE id = %(id)s AND fence = %(fence)s AND ended_at IS NULL;

-- name: put_off
UPDATE outbox SET due_at = %(due_at)s, leased_until = NULL, status = %(status)s, error = %(error)s
 WHERE id = %(id)s AND fence = %(fence)s AND ended_at IS NULL;

-- name: let_go
-- The first of a ordering_key that waited behind another. One that is being sent, or put off, keeps its time.
UPDATE outbox SET due_at = %(now)s
 WHERE id = (SELECT id FROM outbox WHERE ordering_key = %(ordering_key)s AND ended_at IS NULL ORDER BY position LIMIT 1) AND due_at = 'infinity';

-- name: hurry
-- To another receiver, now, and with new patience: the first of a ordering_key need not keep the pace of the old one. One that is being sent is
-- taken from its courier: that the old receiver is gone must not stop the new one.
UPDATE outbox SET receiver = %(receiver)s, sending_since = %(now)s, attempts = 0, leased_until = NULL, fence = fence + 1,
       due_at = CASE WHEN due_at = 'infinity' THEN due_at ELSE %(now)s END
 WHERE ordering_key = %(ordering_key)s AND ended_at IS NULL;

-- name: end_lane
UPDATE outbox SET ended_at = %(now)s, delivered = false, error = %(error)s, due_at = 'infinity', leased_until = NULL,
       fence = fence + 1
 WHERE ordering_key = %(ordering_key)s AND ended_at IS NULL;

-- name: send_again
UPDATE outbox SET ended_at = NULL, delivered = NULL, due_at = 'infinity', sending_since = %(now)s, attempts = 0, receiver = %(receiver)s
 WHERE id IN (SELECT id FROM outbox
               WHERE ordering_key = %(ordering_key)s AND NOT delivered AND (%(ids)s::uuid[] IS NULL OR id = ANY (%(ids)s))
               ORDER BY position LIMIT %(limit)s);

-- name: page
SELECT id, position, NULLIF(due_at, 'infinity') AS due_at, leased_until, attempts, status, error, created_at, ended_at, delivered
  FROM outbox
 WHERE ordering_key = %(ordering_key)s AND position < %(before)s
   AND CASE %(state)s WHEN 'waiting' THEN ended_at IS NULL WHEN 'delivered' THEN delivered WHEN 'dead' THEN NOT delivered ELSE true END
 ORDER BY position DESC LIMIT %(limit)s;

-- name: forget_lane
DELETE FROM outbox WHERE ordering_key = %(ordering_key)s;

-- name: prune
WITH old AS MATERIALIZED (
    SELECT id FROM outbox WHERE ended_at < %(before)s ORDER BY ended_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
DELETE FROM outbox USING old WHERE outbox.id = old.id;
