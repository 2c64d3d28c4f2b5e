-- How many rows there are, no further than a hundred thousand.
SELECT COUNT(*) FROM (SELECT 1 AS one FROM {table} LIMIT 100000) AS counted
