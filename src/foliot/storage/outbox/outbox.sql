-- name: insert
-- Under the lock of the key's webhook. Behind a pending delivery it is due never, until release_next makes it due.
INSERT INTO outbox (workspace_id, id, kind, ordering_key, position, receiver, due_at, sending_since, created_at)
SELECT %(workspace_id)s, %(id)s, %(kind)s, %(ordering_key)s, %(position)s, %(receiver)s,
       CASE WHEN EXISTS (SELECT FROM outbox WHERE ordering_key = %(ordering_key)s AND ended_at IS NULL) THEN 'infinity' ELSE %(now)s::timestamptz END,
       %(now)s, %(now)s;

-- name: lease_due
-- A recursive scan of outbox_due visits each workspace once, so a workspace with many deliveries does not slow down the others. Each gets
-- at most its share, each receiver in it at most its own; the workspace with the fewest being sent is served first. A delivery that is
-- being sent is not due before its lease ends. SKIP LOCKED: rival couriers do not wait for each other.
WITH RECURSIVE served AS (
    (SELECT workspace_id FROM outbox WHERE ended_at IS NULL ORDER BY workspace_id LIMIT 1)
    UNION ALL
    SELECT (SELECT outbox.workspace_id FROM outbox
             WHERE outbox.ended_at IS NULL AND outbox.workspace_id > served.workspace_id
             ORDER BY outbox.workspace_id LIMIT 1)
      FROM served WHERE served.workspace_id IS NOT NULL),
sending AS (
    SELECT * FROM unnest(%(workspaces)s::uuid[], %(receivers)s::text[], %(counts)s::int[]) AS sending (workspace_id, receiver, count)),
busy AS (SELECT workspace_id, sum(count) AS count FROM sending GROUP BY workspace_id),
near AS (
    SELECT served.workspace_id, COALESCE(busy.count, 0) AS busy, first.id, first.receiver, first.due_at
      FROM served LEFT JOIN busy USING (workspace_id)
     CROSS JOIN LATERAL (
           SELECT outbox.id, outbox.receiver, outbox.due_at FROM outbox
            WHERE outbox.workspace_id = served.workspace_id AND outbox.ended_at IS NULL AND outbox.due_at <= %(now)s
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

-- name: find_next_due
-- Deliveries due already wait for a free slot; a courier with one looks without this.
WITH RECURSIVE served AS (
    (SELECT workspace_id FROM outbox WHERE ended_at IS NULL ORDER BY workspace_id LIMIT 1)
    UNION ALL
    SELECT (SELECT outbox.workspace_id FROM outbox
             WHERE outbox.ended_at IS NULL AND outbox.workspace_id > served.workspace_id
             ORDER BY outbox.workspace_id LIMIT 1)
      FROM served WHERE served.workspace_id IS NOT NULL)
SELECT min(coming.due_at)
  FROM served
 CROSS JOIN LATERAL (
       SELECT outbox.due_at FROM outbox
        WHERE outbox.workspace_id = served.workspace_id AND outbox.ended_at IS NULL AND outbox.due_at > %(now)s AND outbox.due_at < 'infinity'
        ORDER BY outbox.due_at LIMIT 1) AS coming;

-- name: end
-- Fenced: a courier whose lease was taken over changes nothing, here and below.
UPDATE outbox SET ended_at = %(now)s, delivered = %(delivered)s, status = %(status)s, error = %(error)s, due_at = 'infinity',
       leased_until = NULL
 WHERE id = %(id)s AND fence = %(fence)s AND ended_at IS NULL;

-- name: postpone
UPDATE outbox SET due_at = %(due_at)s, leased_until = NULL, status = %(status)s, error = %(error)s
 WHERE id = %(id)s AND fence = %(fence)s AND ended_at IS NULL;

-- name: release_next
-- Makes the key's first pending delivery due if it waited behind another. Relies on outbox_first_of_a_key.
UPDATE outbox SET due_at = GREATEST(%(now)s, sending_since)
 WHERE id = (SELECT id FROM outbox WHERE ordering_key = %(ordering_key)s AND ended_at IS NULL ORDER BY position LIMIT 1) AND due_at = 'infinity';

-- name: retarget
-- Sends pending deliveries to another receiver, from now on. The higher fence takes one that is being sent from its courier: a
-- result of the old receiver must not stop the new one.
UPDATE outbox SET receiver = %(receiver)s, sending_since = %(now)s, attempts = 0, leased_until = NULL, fence = fence + 1,
       due_at = CASE WHEN due_at = 'infinity' THEN due_at ELSE %(now)s END
 WHERE ordering_key = %(ordering_key)s AND ended_at IS NULL;

-- name: cancel_pending
UPDATE outbox SET ended_at = %(now)s, delivered = false, error = %(error)s, due_at = 'infinity', leased_until = NULL,
       fence = fence + 1
 WHERE ordering_key = %(ordering_key)s AND ended_at IS NULL;

-- name: send_again
UPDATE outbox SET ended_at = NULL, delivered = NULL, due_at = 'infinity', sending_since = %(now)s, attempts = 0, receiver = %(receiver)s
 WHERE id IN (SELECT id FROM outbox
               WHERE ordering_key = %(ordering_key)s AND NOT delivered AND (%(ids)s::uuid[] IS NULL OR id = ANY (%(ids)s))
               ORDER BY position LIMIT %(limit)s);

-- name: page
SELECT id, position, state, attempts, CASE state WHEN 'waiting' THEN NULLIF(due_at, 'infinity') END AS due_at, status, error, created_at, ended_at
  FROM outbox
 CROSS JOIN LATERAL (SELECT CASE WHEN delivered THEN 'delivered' WHEN ended_at IS NOT NULL THEN 'dead'
                                 WHEN leased_until > %(now)s THEN 'sending' ELSE 'waiting' END) AS current (state)
 WHERE ordering_key = %(ordering_key)s AND position < %(before)s
   AND CASE %(state)s WHEN 'waiting' THEN ended_at IS NULL WHEN 'delivered' THEN delivered WHEN 'dead' THEN NOT delivered ELSE true END
 ORDER BY position DESC LIMIT %(limit)s;

-- name: delete_all
DELETE FROM outbox WHERE ordering_key = %(ordering_key)s;

-- name: prune
WITH old AS MATERIALIZED (
    SELECT id FROM outbox WHERE ended_at < %(before)s ORDER BY ended_at LIMIT %(limit)s FOR UPDATE SKIP LOCKED)
DELETE FROM outbox USING old WHERE outbox.id = old.id;
