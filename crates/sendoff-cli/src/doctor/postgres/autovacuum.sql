-- Tables that are excepted from it.
SELECT c.oid::regclass::text AS table_name
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
CROSS JOIN LATERAL pg_options_to_table(c.reloptions) AS o
WHERE n.nspname = $1 AND c.relname = ANY ($2) AND o.option_name = 'autovacuum_enabled' AND NOT o.option_value::boolean
ORDER BY 1
