-- One that is read is told of only when it is far behind.
SELECT
    s.slot_name::text AS slot, s.slot_type AS kind, s.active, s.active_pid,
    s.xmin IS NOT NULL AS pins_rows, coalesce(age(s.xmin), age(s.catalog_xmin))::bigint AS transactions
FROM pg_replication_slots AS s
WHERE (s.database IS NULL OR s.database = current_database())
    AND coalesce(s.xmin, s.catalog_xmin) IS NOT NULL
    AND (NOT s.active OR coalesce(age(s.xmin), age(s.catalog_xmin)) > 1000000)
ORDER BY s.slot_name
LIMIT 10
