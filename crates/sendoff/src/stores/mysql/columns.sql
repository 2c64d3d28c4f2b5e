-- The columns of a table. CONVERT: some servers hand these out as bytes.
SELECT CONVERT(COLUMN_NAME USING utf8mb4) AS `name`,
       CONVERT(LOWER(DATA_TYPE) USING utf8mb4) AS `base_type`,
       CONVERT(LOWER(COLUMN_TYPE) USING utf8mb4) AS `declared_type`,
       CONVERT(IS_NULLABLE USING utf8mb4) AS `nullable`
FROM information_schema.COLUMNS
WHERE TABLE_SCHEMA = COALESCE(?, DATABASE())
  AND TABLE_NAME = ?
ORDER BY ORDINAL_POSITION
