SELECT p.target, p.lane, p.id, p.{key}
FROM {parked} AS p {force_by_reason}
WHERE p.target = {:target} AND p.reason = {:reason}
ORDER BY p.id
LIMIT {:limit}
