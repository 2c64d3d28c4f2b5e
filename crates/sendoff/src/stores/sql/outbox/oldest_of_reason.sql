SELECT p.created_at
FROM {parked} AS p {force_by_reason}
WHERE p.target = {:target} AND p.reason = {:reason}
ORDER BY p.id
LIMIT 1
