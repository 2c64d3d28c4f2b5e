-- How many rows a claim could take, no further than its limit. Locks nothing.
SELECT COUNT(*) AS counted
FROM (SELECT 1 AS one FROM {table} AS t WHERE {eligible} LIMIT {limit}) AS rows_of_claim
