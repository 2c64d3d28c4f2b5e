SELECT p.gid, p.owner::text AS role, extract(epoch FROM clock_timestamp() - p.prepared)::float8 AS seconds
FROM pg_prepared_xacts AS p
WHERE p.database = current_database() AND p.prepared <= clock_timestamp() - $1 * interval '1 second'
ORDER BY p.prepared
LIMIT 10
