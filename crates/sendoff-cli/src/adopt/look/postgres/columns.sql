-- Name, type, whether it may be null, what it is by itself, whether it rises by itself, the labels of an enum.
SELECT a.attname::text,
       format_type(a.atttypid, a.atttypmod),
       CASE WHEN a.attnotnull THEN 'no' ELSE 'yes' END,
       pg_get_expr(d.adbin, d.adrelid),
       CASE WHEN a.attidentity <> '' OR pg_get_expr(d.adbin, d.adrelid) LIKE 'nextval(%' THEN 'yes' ELSE 'no' END,
       (SELECT string_agg(e.enumlabel::text, chr(10) ORDER BY e.enumsortorder) FROM pg_enum AS e WHERE e.enumtypid = a.atttypid)
FROM pg_attribute AS a
LEFT JOIN pg_attrdef AS d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum
