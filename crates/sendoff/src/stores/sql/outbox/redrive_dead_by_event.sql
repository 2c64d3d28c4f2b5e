SELECT d.target, d.lane, d.id, d.{key}
FROM {dead} AS d
WHERE d.event_id = {:event_id}
ORDER BY d.id
LIMIT {:limit}
