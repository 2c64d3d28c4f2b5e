-- Sessions of this database that keep deleted rows: by the snapshot they have, or by having written.
SELECT
    a.pid, coalesce(a.usename::text, '') AS role, coalesce(a.application_name, '') AS application,
    coalesce(a.state, 'active') AS state, extract(epoch FROM clock_timestamp() - a.xact_start)::float8 AS seconds,
    EXISTS (
        SELECT 1
        FROM pg_locks AS l
        WHERE l.pid = a.pid AND l.locktype = 'relation' AND l.mode = 'RowExclusiveLock'
            AND l.relation = to_regclass($2)
    ) AS writes
FROM pg_stat_activity AS a
WHERE a.datname = current_database() AND a.pid <> pg_backend_pid()
    AND a.backend_type IN ('client backend', 'background worker')
    AND (a.backend_xmin IS NOT NULL OR a.backend_xid IS NOT NULL)
    AND a.xact_start <= clock_timestamp() - $1 * interval '1 second'
ORDER BY a.xact_start
LIMIT 10
