SELECT s.seqrelid::regclass::text AS sequence, s.seqcache AS cache
FROM pg_sequence AS s
WHERE s.seqrelid = pg_get_serial_sequence($1, 'id')::regclass
