-- Name, whether every row is told apart by it, its columns.
SELECT c.relname::text,
       CASE WHEN i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL THEN 'yes' ELSE 'no' END,
       (SELECT string_agg(pg_get_indexdef(i.indexrelid, place, true), chr(10) ORDER BY place)
        FROM generate_series(1, i.indnkeyatts::int) AS place)
FROM pg_index AS i
JOIN pg_class AS c ON c.oid = i.indexrelid
WHERE i.indrelid = to_regclass($1) AND i.indisvalid
ORDER BY i.indisprimary DESC, c.relname
