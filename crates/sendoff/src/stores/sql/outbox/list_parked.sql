SELECT {:state} AS state, p.target,
    p.id, p.lane, p.topic, p.{key}, p.payload, p.content_type, p.headers, p.event_id, p.created_at,
    p.reason, p.due_at, p.failures, p.crashes, p.cause, p.error, p.parked_at AS since
FROM (
    SELECT u.lane, u.id
    FROM ({:parts}) AS u
    ORDER BY u.id
    LIMIT {:limit}
) AS page
JOIN {parked} AS p ON p.target = {:target} AND p.lane = page.lane AND p.id = page.id
ORDER BY p.id
