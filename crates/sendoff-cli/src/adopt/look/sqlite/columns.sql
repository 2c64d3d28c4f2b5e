-- Name, type, whether it may be null, what it is by itself, whether it rises by itself; there are no enums.
SELECT c.name,
       c.type,
       CASE WHEN c."notnull" = 0 AND c.pk = 0 THEN 'yes' ELSE 'no' END,
       c.dflt_value,
       CASE WHEN c.pk = 1 AND UPPER(c.type) = 'INTEGER' THEN 'yes' ELSE 'no' END,
       NULL
FROM pragma_table_info(?1, COALESCE(?2, 'main')) AS c
ORDER BY c.cid
