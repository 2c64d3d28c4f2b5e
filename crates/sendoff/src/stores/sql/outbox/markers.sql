SELECT p.id, p.{key}
FROM {parked} AS p {force_by_key}
WHERE p.target = {:target} AND p.lane = {:lane} AND p.{key} IN ({:keys}) AND p.reason <> 'delayed'
    AND p.reason = 'diverted'
ORDER BY p.id
