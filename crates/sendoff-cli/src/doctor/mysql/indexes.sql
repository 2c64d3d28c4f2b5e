SELECT DISTINCT CAST(s.table_name AS CHAR) AS table_name, CAST(s.index_name AS CHAR) AS index_name
FROM information_schema.statistics AS s
WHERE s.table_schema = database() AND LEFT(s.table_name, CHAR_LENGTH(?)) = ?
