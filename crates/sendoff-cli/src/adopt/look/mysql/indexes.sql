-- Name, whether every row is told apart by it, its columns.
SELECT CAST(s.index_name AS CHAR),
       CASE WHEN MAX(s.non_unique) = 0 AND MAX(s.sub_part IS NOT NULL) = 0 THEN 'yes' ELSE 'no' END,
       CAST(GROUP_CONCAT(s.column_name ORDER BY s.seq_in_index SEPARATOR '\n') AS CHAR)
FROM information_schema.statistics AS s
WHERE s.table_name = ? AND s.table_schema = COALESCE(?, DATABASE())
GROUP BY s.index_name
ORDER BY s.index_name = 'PRIMARY' DESC, s.index_name
