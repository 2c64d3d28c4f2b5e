-- The columns of a table, with the type under a domain.
SELECT a.attname::text AS name,
       format_type(coalesce(nullif(ty.typbasetype, 0), ty.oid), NULL) AS base_type,
       format_type(a.atttypid, a.atttypmod) AS declared_type,
       a.attnotnull AS required
FROM pg_attribute AS a
JOIN pg_type AS ty ON ty.oid = a.atttypid
WHERE a.attrelid = to_regclass($1)
  AND a.attnum > 0
  AND NOT a.attisdropped
ORDER BY a.attnum
