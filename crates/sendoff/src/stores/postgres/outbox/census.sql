-- A worker that holds a session lock is gone when the lock is.
SELECT
    w.worker,
    (SELECT count(*) FROM {meta} AS m WHERE m.name = $2) AS paused,
    w.has_session AND NOT EXISTS (
        SELECT 1
        FROM pg_locks AS lock
        WHERE lock.locktype = 'advisory' AND lock.objsubid = 1
            AND lock.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
            AND (lock.classid::bigint << 32) | lock.objid::bigint
                = ('x' || left(replace(w.worker::text, '-', ''), 16))::bit(64)::bigint
    ) AS is_gone,
    s.value AS scope
FROM {worker} AS w
LEFT JOIN {meta} AS s ON s.name = 'scope:' || replace(w.worker::text, '-', '')
WHERE w.target = $1 AND w.lease_until >= statement_timestamp()
