-- The columns of a table, generated ones too.
SELECT name AS "name", type AS "declared_type", "notnull" AS "required", pk AS "key_place"
FROM pragma_table_xinfo(?, ?)
ORDER BY cid
