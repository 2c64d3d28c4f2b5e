-- What is parked of one key after its first one.
SELECT p.id, p.lane, p.topic, p.{key}, p.payload, p.content_type, p.headers, p.event_id, p.created_at,
    p.reason, p.failures, p.crashes, p.due_at, NULL AS hold
FROM {parked} AS p
WHERE p.target = {:target} AND p.lane = {:lane} AND p.{key} = {:key} AND p.id > {:above} AND p.reason <> 'delayed'
ORDER BY p.id
LIMIT {:limit}
