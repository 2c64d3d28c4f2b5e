-- Whether this user may read the table, write it, delete from it, and make one beside it, by rights of its own.
SELECT CASE WHEN MAX(had.right_to = 'SELECT') THEN 'yes' ELSE 'no' END,
       CASE WHEN MAX(had.right_to = 'UPDATE') THEN 'yes' ELSE 'no' END,
       CASE WHEN MAX(had.right_to = 'DELETE') THEN 'yes' ELSE 'no' END,
       CASE WHEN MAX(had.right_to = 'CREATE') THEN 'yes' ELSE 'no' END
FROM (SELECT ? AS named, COALESCE(?, DATABASE()) AS place,
             CONCAT('''', REPLACE(CURRENT_USER(), '@', '''@'''), '''') AS who) AS asked
JOIN (
    SELECT grantee, NULL AS place, NULL AS named, privilege_type AS right_to FROM information_schema.user_privileges
    UNION ALL
    SELECT grantee, table_schema, NULL, privilege_type FROM information_schema.schema_privileges
    UNION ALL
    SELECT grantee, table_schema, table_name, privilege_type FROM information_schema.table_privileges
) AS had
  ON had.grantee = asked.who
 AND (had.place IS NULL OR asked.place LIKE had.place)
 AND (had.named IS NULL OR had.named = asked.named)
