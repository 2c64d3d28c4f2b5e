SELECT s.type AS kind, s.name AS name, s.tbl_name AS table_name FROM sqlite_schema AS s WHERE s.type IN ('table', 'index')
