-- Unique indexes that hold for every row: not partial, not on expressions (their column has no name).
SELECT list.name AS "index", info.name AS "column"
FROM pragma_index_list(?, ?) AS list
JOIN pragma_index_info(list.name) AS info
WHERE list."unique" = 1
  AND list.partial = 0
  AND NOT EXISTS (SELECT 1 FROM pragma_index_info(list.name) AS part WHERE part.name IS NULL)
ORDER BY list.seq, info.seqno
