SELECT CAST(t.table_name AS CHAR) AS table_name, CAST(t.engine AS CHAR) AS engine
FROM information_schema.tables AS t
WHERE t.table_schema = database() AND LEFT(t.table_name, CHAR_LENGTH(?)) = ?
