-- Two imports of one file at the same time must not make two jobs of a record. Of doubles from before, the oldest stays the import's own.
UPDATE jobs SET definition = definition #- '{external_ref,digest}'
 WHERE id IN (SELECT id FROM (SELECT id, row_number() OVER (
                  PARTITION BY workspace_id, definition -> 'external_ref' ->> 'source', definition -> 'external_ref' ->> 'id'
                  ORDER BY created_at, id) AS place FROM jobs WHERE definition -> 'external_ref' ? 'digest') AS found
               WHERE place > 1);
CREATE UNIQUE INDEX jobs_one_per_imported_record
    ON jobs (workspace_id, (definition -> 'external_ref' ->> 'source'), (definition -> 'external_ref' ->> 'id'))
 WHERE definition -> 'external_ref' ? 'digest';
