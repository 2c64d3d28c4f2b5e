SELECT p.id
FROM {published} AS p
WHERE p.target = {:target} AND p.published_at < {:before}
ORDER BY p.published_at, p.id
LIMIT {:limit}
