SELECT
    t.relname::text AS table_name, i.relname::text AS index_name, x.indisprimary AS is_primary,
    x.indisvalid AND x.indisready AS is_valid, x.indexrelid::regclass::text AS quoted
FROM pg_index AS x
JOIN pg_class AS i ON i.oid = x.indexrelid
JOIN pg_class AS t ON t.oid = x.indrelid
JOIN pg_namespace AS n ON n.oid = t.relnamespace
WHERE n.nspname = $1
