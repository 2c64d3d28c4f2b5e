SELECT {now} AS now, m.name, m.value
FROM (SELECT 1 AS one) AS o
LEFT JOIN {meta} AS m ON m.name LIKE 'down:%'
LIMIT {:limit}
