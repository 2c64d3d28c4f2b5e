INSERT INTO {dead} (
    target, lane, id, topic, {key}, payload, content_type, headers, event_id, created_at,
    failures, crashes, cause, error, died_at
)
SELECT p.target, p.lane, p.id, p.topic, p.{key}, p.payload, p.content_type, p.headers, p.event_id, p.created_at,
    {:failures}, {:crashes}, {:cause}, {:error}, {now}
FROM {parked} AS p
WHERE p.target = {:target} AND p.lane IN ({:lanes}) AND p.id IN ({:ids})
