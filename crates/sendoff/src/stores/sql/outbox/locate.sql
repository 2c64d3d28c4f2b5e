-- One event, wherever it is, in one snapshot: it may be on its way from one table to another. The parked ones come first, since their columns tell the
-- types of the others'.
SELECT CASE WHEN p.reason = 'delayed' THEN 'unprocessed' ELSE 'failed' END AS state, p.target,
    p.id, p.lane, p.topic, p.{key}, p.payload, p.content_type, p.headers, p.event_id, p.created_at,
    p.reason, p.due_at, p.failures, p.crashes, p.cause, p.error, p.parked_at AS since
FROM {parked} AS p
WHERE p.event_id = {:event_id} AND p.reason <> 'diverted'
UNION ALL
SELECT
    CASE WHEN l.owner IS NULL THEN 'unprocessed' WHEN l.lease_until < {now} THEN 'abandoned' ELSE 'processing' END,
    e.target, e.id, e.lane, e.topic, e.{key}, e.payload, e.content_type, e.headers, e.event_id, e.created_at,
    NULL, CASE WHEN e.deliver_at > {now} THEN e.deliver_at END, 0, 0, NULL, NULL, NULL
FROM {event} AS e
LEFT JOIN {lane} AS l ON l.target = e.target AND l.lane = e.lane
WHERE e.event_id = {:event_id}
UNION ALL
SELECT 'dead', d.target, d.id, d.lane, d.topic, d.{key}, d.payload, d.content_type, d.headers, d.event_id, d.created_at,
    NULL, NULL, d.failures, d.crashes, d.cause, d.error, d.died_at
FROM {dead} AS d
WHERE d.event_id = {:event_id}
UNION ALL
SELECT 'published', p.target, p.id, p.lane, p.topic, p.{key}, p.payload, p.content_type, p.headers, p.event_id, p.created_at,
    NULL, NULL, 0, 0, NULL, NULL, p.published_at
FROM {published} AS p
WHERE p.event_id = {:event_id}
