SELECT
    s.relid::regclass::text AS table_name, s.n_live_tup AS live, s.n_dead_tup AS dead,
    extract(epoch FROM clock_timestamp() - greatest(s.last_autovacuum, s.last_vacuum))::float8 AS seconds
FROM pg_stat_user_tables AS s
WHERE s.schemaname = $1 AND s.relname = ANY ($2) AND s.n_dead_tup > $3
    AND coalesce(greatest(s.last_autovacuum, s.last_vacuum) < clock_timestamp() - interval '1 hour', true)
ORDER BY s.n_dead_tup DESC
