-- One lane of the key, which only the database can name.
SELECT p.target, p.lane, p.id, p.{key}
FROM {parked} AS p {force_by_key}
WHERE p.target = {:target} AND p.lane = {:lane} AND p.{key} = {:key}
    AND p.reason <> 'delayed' AND p.reason IN ('retry', 'blocked')
ORDER BY p.id
LIMIT {:limit}
