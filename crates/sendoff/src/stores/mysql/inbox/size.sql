-- As of when the server last looked.
SELECT CAST(SUM(t.data_length + t.index_length) AS SIGNED) AS bytes
FROM information_schema.tables AS t
WHERE t.table_schema = DATABASE() AND t.table_name IN ({:seen}, {:order})
