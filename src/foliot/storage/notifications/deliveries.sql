-- name: insert
-- Under the locks of the channels. Of one thread only the first that has not ended is due; `is_behind` marks those of this statement
-- that follow another one of it.
WITH new AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(ordering_keys)s::uuid[], %(positions)s::bigint[], %(due_ats)s::timestamptz[], %(is_behind)s::boolean[],
                         %(channel_ids)s::uuid[], %(incident_ids)s::uuid[], %(job_ids)s::uuid[], %(events)s::text[], %(recipients)s::jsonb[],
                         %(contents)s::jsonb[])
               AS new (id, ordering_key, position, due_at, is_behind, channel_id, incident_id, job_id, event, recipients, content)),
queued AS (
    INSERT INTO outbox (workspace_id, id, kind, ordering_key, position, receiver, due_at, sending_since, created_at)
    SELECT %(workspace_id)s, new.id, 'notice', new.ordering_key, new.position, channels.receiver,
           CASE WHEN new.is_behind OR EXISTS (SELECT FROM outbox WHERE outbox.ordering_key = new.ordering_key AND outbox.ended_at IS NULL)
                THEN 'infinity' ELSE COALESCE(new.due_at, %(now)s) END,
           COALESCE(new.due_at, %(now)s), %(now)s
      FROM new JOIN channels ON channels.id = new.channel_id
 RETURNING id)
INSERT INTO delivery_contents (workspace_id, delivery_id, channel_id, incident_id, job_id, event, recipients, content)
SELECT %(workspace_id)s, new.id, new.channel_id, new.incident_id, new.job_id, new.event, ARRAY(SELECT jsonb_array_elements_text(new.recipients)), new.content
  FROM new JOIN queued USING (id);

-- name: load
SELECT delivery_contents.delivery_id, delivery_contents.channel_id, delivery_contents.incident_id, delivery_contents.recipients,
       delivery_contents.content, channels.name, channels.kind, channels.config, channels.enabled AND channels.disabled_at IS NULL AS is_usable,
       incident_threads.thread,
       ARRAY(SELECT address FROM refused_addresses WHERE refused_addresses.channel_id = channels.id) AS refused
  FROM delivery_contents
  JOIN channels ON channels.id = delivery_contents.channel_id
  LEFT JOIN incident_threads ON incident_threads.incident_id = delivery_contents.incident_id
                            AND incident_threads.channel_id = delivery_contents.channel_id
 WHERE delivery_contents.delivery_id = ANY (%(ids)s);

-- name: find_owner
SELECT channel_id, incident_id FROM delivery_contents WHERE delivery_id = %(id)s;

-- name: set_recipients
-- The next attempt is for those who have not got it.
UPDATE delivery_contents SET recipients = %(recipients)s WHERE delivery_id = %(id)s;

-- name: set_answer
UPDATE delivery_contents SET answer = %(answer)s WHERE delivery_id = %(id)s;

-- name: page
-- Relies on delivery_contents_newest and, with a channel or an incident, on their indexes.
SELECT outbox.id, state, delivery_contents.channel_id, channels.name AS channel_name, channels.kind AS channel_kind, delivery_contents.incident_id,
       delivery_contents.job_id, delivery_contents.event, delivery_contents.content ->> 'title' AS title,
       delivery_contents.content ->> 'kind' AS message_kind, delivery_contents.recipients, delivery_contents.answer,
       outbox.attempts, CASE state WHEN 'waiting' THEN NULLIF(outbox.due_at, 'infinity') END AS due_at, outbox.status, outbox.error,
       outbox.created_at, outbox.ended_at
  FROM delivery_contents
  JOIN outbox ON outbox.id = delivery_contents.delivery_id
  JOIN channels ON channels.id = delivery_contents.channel_id
 CROSS JOIN LATERAL (SELECT CASE WHEN delivered THEN 'delivered' WHEN ended_at IS NOT NULL THEN 'dead'
                                 WHEN leased_until > %(now)s THEN 'sending' ELSE 'waiting' END) AS current (state)
 WHERE delivery_contents.workspace_id = %(workspace_id)s AND delivery_contents.delivery_id < %(before)s
   AND (%(channel_id)s::uuid IS NULL OR delivery_contents.channel_id = %(channel_id)s)
   AND (%(incident_id)s::uuid IS NULL OR delivery_contents.incident_id = %(incident_id)s)
   AND (%(job_id)s::uuid IS NULL OR delivery_contents.job_id = %(job_id)s)
   AND (%(owner_id)s::uuid IS NULL OR EXISTS (SELECT FROM jobs WHERE jobs.id = delivery_contents.job_id AND jobs.owner_id = %(owner_id)s))
   AND CASE %(state)s WHEN 'waiting' THEN outbox.ended_at IS NULL WHEN 'delivered' THEN outbox.delivered WHEN 'dead' THEN NOT outbox.delivered ELSE true END
 ORDER BY delivery_contents.delivery_id DESC LIMIT %(limit)s;

-- name: get
SELECT outbox.id, state, delivery_contents.channel_id, channels.name AS channel_name, channels.kind AS channel_kind, delivery_contents.incident_id,
       delivery_contents.job_id, delivery_contents.event, delivery_contents.content ->> 'title' AS title,
       delivery_contents.content ->> 'kind' AS message_kind, delivery_contents.recipients, delivery_contents.answer,
       outbox.attempts, CASE state WHEN 'waiting' THEN NULLIF(outbox.due_at, 'infinity') END AS due_at, outbox.status, outbox.error,
       outbox.created_at, outbox.ended_at
  FROM delivery_contents
  JOIN outbox ON outbox.id = delivery_contents.delivery_id
  JOIN channels ON channels.id = delivery_contents.channel_id
 CROSS JOIN LATERAL (SELECT CASE WHEN delivered THEN 'delivered' WHEN ended_at IS NOT NULL THEN 'dead'
                                 WHEN leased_until > %(now)s THEN 'sending' ELSE 'waiting' END) AS current (state)
 WHERE delivery_contents.delivery_id = %(id)s;

-- name: replay
-- Under the lock of the channel: the delivery is due again, under its old id. It waits behind an earlier one of its thread.
UPDATE outbox SET ended_at = NULL, delivered = NULL, sending_since = %(now)s, attempts = 0, status = NULL, error = NULL,
       receiver = channels.receiver,
       due_at = CASE WHEN EXISTS (SELECT FROM outbox AS other WHERE other.ordering_key = outbox.ordering_key AND other.ended_at IS NULL)
                     THEN 'infinity'::timestamptz ELSE %(now)s END
  FROM delivery_contents JOIN channels ON channels.id = delivery_contents.channel_id
 WHERE outbox.id = %(id)s AND delivery_contents.delivery_id = outbox.id AND outbox.ended_at IS NOT NULL;
