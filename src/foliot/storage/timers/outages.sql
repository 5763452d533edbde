-- name: note_tick
-- The row lock orders the nodes: the one that waits reads the tick of the other, and only the first records the outage.
WITH before AS (SELECT ticked_at FROM scheduler_clock FOR UPDATE),
     moved AS (INSERT INTO scheduler_clock (ticked_at) VALUES (%(now)s)
                   ON CONFLICT (singleton) DO UPDATE SET ticked_at = greatest(scheduler_clock.ticked_at, EXCLUDED.ticked_at)),
     forgotten AS (DELETE FROM outages WHERE ended_at < %(forget)s)
INSERT INTO outages (started_at, ended_at)
SELECT ticked_at, %(now)s FROM before WHERE ticked_at < %(silent_since)s
    ON CONFLICT DO NOTHING;

-- name: list_between
-- Relies on outages_by_end.
SELECT started_at, ended_at FROM outages
 WHERE ended_at > %(start)s AND started_at <= %(end)s ORDER BY started_at DESC LIMIT %(limit)s;

-- name: last_tick
SELECT ticked_at FROM scheduler_clock;
