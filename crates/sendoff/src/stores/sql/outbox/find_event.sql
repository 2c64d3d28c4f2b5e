SELECT e.id, e.lane, e.topic, e.{key}, e.payload, e.content_type, e.headers, e.event_id, e.created_at,
    NULL AS later, NULL AS hold
FROM {event} AS e
WHERE e.target = {:target} AND e.lane = {:lane} AND e.id = {:id}
