SELECT {:state} AS state, p.target,
    p.id, p.lane, p.topic, p.{key}, p.payload, p.content_type, p.headers, p.event_id, p.created_at,
    NULL AS reason, NULL AS due_at, 0 AS failures, 0 AS crashes, NULL AS cause, NULL AS error, p.published_at AS since
FROM {published} AS p
WHERE p.target = {:target} AND p.id > {:above}
ORDER BY p.id
LIMIT {:limit}
