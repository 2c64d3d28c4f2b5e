SELECT d.target, d.lane, d.id, d.{key}
FROM {dead} AS d
WHERE d.target = {:target}
ORDER BY d.id
LIMIT {:limit}
