-- Name, type, whether it may be null, what it is by itself, whether it rises by itself; the labels of an enum stand in its type.
SELECT CAST(c.column_name AS CHAR),
       CAST(c.column_type AS CHAR),
       CASE WHEN c.is_nullable = 'YES' THEN 'yes' ELSE 'no' END,
       CAST(c.column_default AS CHAR),
       CASE WHEN c.extra LIKE '%auto_increment%' THEN 'yes' ELSE 'no' END,
       CAST(NULL AS CHAR)
FROM information_schema.columns AS c
WHERE c.table_name = ? AND c.table_schema = COALESCE(?, DATABASE())
ORDER BY c.ordinal_position
