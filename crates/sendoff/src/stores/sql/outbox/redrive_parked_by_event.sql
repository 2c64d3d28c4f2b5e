SELECT p.target, p.lane, p.id, p.{key}
FROM {parked} AS p
WHERE p.event_id = {:event_id} AND p.reason IN ('retry', 'blocked')
ORDER BY p.id
LIMIT {:limit}
