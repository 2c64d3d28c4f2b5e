SELECT q.lane, q.id
FROM {parked} AS q {force_by_reason}
WHERE q.target = {:target} AND q.reason = {:reason} AND q.id > {:above}
ORDER BY q.id
LIMIT {:limit}
