SELECT
    r.pid, coalesce(r.application_name, '') AS application, coalesce(host(r.client_addr), 'local') AS address,
    age(r.backend_xmin)::bigint AS transactions
FROM pg_stat_replication AS r
WHERE r.backend_xmin IS NOT NULL AND age(r.backend_xmin) > 1000000
ORDER BY r.pid
LIMIT 10
