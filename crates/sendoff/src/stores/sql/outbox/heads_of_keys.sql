SELECT MIN(p.id) AS id
FROM {parked} AS p {force_by_key}
WHERE p.target = {:target} AND p.lane = {:lane} AND p.{key} IN ({:keys}) AND p.reason <> 'delayed'
GROUP BY p.{key}
