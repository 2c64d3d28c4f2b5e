-- The values that a column has, in as many rows as are quickly read.
SELECT CAST(few.word AS {text})
FROM (SELECT {column} AS word FROM {table} WHERE {column} IS NOT NULL LIMIT 10000) AS few
GROUP BY few.word
ORDER BY COUNT(*) DESC
LIMIT 20
