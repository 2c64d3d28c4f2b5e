SELECT e.id, e.lane, e.topic, e.{key}, e.payload, e.content_type, e.headers, e.event_id, e.created_at,
    CASE WHEN e.deliver_at > {now} THEN e.deliver_at END AS later,
    (
        SELECT CASE WHEN p.reason = 'diverted' THEN 'diverted' WHEN p.due_at <= {now} THEN 'draining' ELSE 'held' END
        FROM {parked} AS p
        WHERE p.target = e.target AND p.lane = e.lane AND p.{key} = e.{key} AND p.reason <> 'delayed'
        ORDER BY p.id
        LIMIT 1
    ) AS hold
FROM {event} AS e
WHERE e.id IN ({:ids})
