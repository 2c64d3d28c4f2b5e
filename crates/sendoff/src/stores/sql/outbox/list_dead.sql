SELECT {:state} AS state, d.target,
    d.id, d.lane, d.topic, d.{key}, d.payload, d.content_type, d.headers, d.event_id, d.created_at,
    NULL AS reason, NULL AS due_at, d.failures, d.crashes, d.cause, d.error, d.died_at AS since
FROM {dead} AS d
WHERE d.target = {:target} AND d.id > {:above}
ORDER BY d.id
LIMIT {:limit}
