-- Every B-tree index of a table, a row for each of its columns.
SELECT CONVERT(INDEX_NAME USING utf8mb4) AS `index`,
       CONVERT(COALESCE(COLUMN_NAME, '') USING utf8mb4) AS `column`,
       CONVERT(COALESCE(COLLATION, 'A') USING utf8mb4) AS `direction`,
       CAST(SUB_PART IS NOT NULL AS SIGNED) AS `is_prefix`,
       CAST(NON_UNIQUE = 0 AS SIGNED) AS `is_unique`
FROM information_schema.STATISTICS
WHERE TABLE_SCHEMA = COALESCE(?, DATABASE())
  AND TABLE_NAME = ?
  AND INDEX_TYPE = 'BTREE'
ORDER BY INDEX_NAME, SEQ_IN_INDEX
