INSERT INTO {parked} (
    target, lane, id, topic, {key}, payload, content_type, headers, event_id, created_at,
    reason, due_at, failures, crashes, cause, error, parked_at
)
SELECT e.target, e.lane, e.id, e.topic, e.{key}, e.payload, e.content_type, e.headers, e.event_id, e.created_at,
    {:reason}, {:due}, {:failures}, {:crashes}, {:cause}, {:error}, {now}
FROM {event} AS e
WHERE e.target = {:target} AND e.lane IN ({:lanes}) AND e.id IN ({:ids})
