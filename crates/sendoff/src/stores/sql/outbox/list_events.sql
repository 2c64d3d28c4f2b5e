-- The first positions of each lane, then the first of those: only these are read whole.
SELECT {:state} AS state, e.target,
    e.id, e.lane, e.topic, e.{key}, e.payload, e.content_type, e.headers, e.event_id, e.created_at,
    NULL AS reason, CASE WHEN e.deliver_at > {now} THEN e.deliver_at END AS due_at, 0 AS failures, 0 AS crashes,
    NULL AS cause, NULL AS error, NULL AS since
FROM (
    SELECT u.lane, u.id
    FROM ({:parts}) AS u
    ORDER BY u.id
    LIMIT {:limit}
) AS page
JOIN {event} AS e ON e.target = {:target} AND e.lane = page.lane AND e.id = page.id
ORDER BY e.id
