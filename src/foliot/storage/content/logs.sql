-- name: lock_heads
-- Inserts missing heads and locks all, in the order of ids. A deleted run gets none.
INSERT INTO logs (workspace_id, run_id)
SELECT workspace_id, id FROM runs WHERE id = ANY (%(run_ids)s) ORDER BY id
    ON CONFLICT (run_id) DO UPDATE SET lines = logs.lines
RETURNING run_id, lines AS "head.lines", bytes AS "head.bytes", truncated AS "head.truncated", fence, lines_received;

-- name: append
WITH heads AS (
    UPDATE logs SET lines = new.lines, bytes = new.bytes, truncated = new.truncated, fence = new.fence, lines_received = new.lines_received
      FROM unnest(%(run_ids)s::uuid[], %(lines)s::int[], %(bytes)s::int[], %(truncateds)s::boolean[], %(fences)s::bigint[], %(lines_received)s::int[])
           AS new (run_id, lines, bytes, truncated, fence, lines_received)
     WHERE logs.run_id = new.run_id
 RETURNING logs.run_id, logs.workspace_id)
INSERT INTO log_chunks (workspace_id, run_id, last_seq, attempt, lines)
SELECT heads.workspace_id, chunk.run_id, chunk.last_seq, chunk.attempt, chunk.lines
  FROM unnest(%(chunk_run_ids)s::uuid[], %(last_seqs)s::int[], %(attempts)s::int[], %(chunks)s::jsonb[])
       AS chunk (run_id, last_seq, attempt, lines)
  JOIN heads USING (run_id);

-- name: page
-- Relies on the primary key: only chunks behind `after` are read. OFFSET 0: PostgreSQL computes the length once for each chunk, which it
-- decompresses for that, and not once for each line.
SELECT chunk.attempt, (chunk.before + line.ordinal)::int AS seq,
       (line.value ->> 0)::timestamptz AS "line.at", line.value ->> 1 AS "line.stream", line.value ->> 2 AS "line.text"
  FROM (SELECT attempt, last_seq, lines, last_seq - jsonb_array_length(lines) AS before
          FROM log_chunks WHERE run_id = %(run_id)s AND last_seq > %(after)s OFFSET 0) AS chunk
 CROSS JOIN LATERAL jsonb_array_elements(chunk.lines) WITH ORDINALITY AS line (value, ordinal)
 WHERE chunk.before + line.ordinal > %(after)s
 ORDER BY chunk.last_seq, line.ordinal
 LIMIT %(limit)s;

-- name: load_head
SELECT lines, bytes, truncated FROM logs WHERE run_id = %(run_id)s;

-- name: load_progress
SELECT run_id, progress FROM leases WHERE run_id = ANY (%(run_ids)s) AND progress IS NOT NULL;
