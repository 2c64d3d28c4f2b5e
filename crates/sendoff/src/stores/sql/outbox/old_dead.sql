SELECT d.target, d.lane, d.id, d.{key}
FROM {dead} AS d
WHERE d.target = {:target} AND d.died_at < {:before}
ORDER BY d.died_at, d.id
LIMIT {:limit}
