INSERT INTO {published} (target, lane, id, topic, {key}, payload, content_type, headers, event_id, created_at, published_at)
SELECT e.target, e.lane, e.id, e.topic, e.{key}, e.payload, e.content_type, e.headers, e.event_id, e.created_at, {now}
FROM {event} AS e
WHERE e.target = {:target} AND e.lane IN ({:lanes}) AND e.id IN ({:ids})
