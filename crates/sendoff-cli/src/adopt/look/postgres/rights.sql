-- Whether this role may read the table, write it, delete from it, and make one beside it.
SELECT CASE WHEN has_table_privilege(c.oid, 'SELECT') THEN 'yes' ELSE 'no' END,
       CASE WHEN has_table_privilege(c.oid, 'UPDATE') THEN 'yes' ELSE 'no' END,
       CASE WHEN has_table_privilege(c.oid, 'DELETE') THEN 'yes' ELSE 'no' END,
       CASE WHEN has_schema_privilege(c.relnamespace, 'CREATE') THEN 'yes' ELSE 'no' END
FROM pg_class AS c
WHERE c.oid = to_regclass($1)
