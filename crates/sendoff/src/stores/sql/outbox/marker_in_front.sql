SELECT p.id, p.reason
FROM {parked} AS p {force_by_key}
WHERE p.target = {:target} AND p.lane = {:lane} AND p.{key} = {:key} AND p.reason <> 'delayed'
ORDER BY p.id
LIMIT 1
