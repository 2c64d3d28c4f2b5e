-- The due ones of one lane that are the first of their key, and delayed ones.
SELECT p.id, p.lane, p.topic, p.{key}, p.payload, p.content_type, p.headers, p.event_id, p.created_at,
    p.reason, p.failures, p.crashes, p.due_at,
    CASE WHEN p.reason = 'delayed' THEN (
        SELECT CASE WHEN q.reason = 'diverted' THEN 'diverted' WHEN q.due_at <= {now} THEN 'draining' ELSE 'held' END
        FROM {parked} AS q
        WHERE q.target = p.target AND q.lane = p.lane AND q.{key} = p.{key} AND q.reason <> 'delayed'
        ORDER BY q.id
        LIMIT 1
    ) END AS hold
FROM {parked} AS p
WHERE p.target = {:target} AND p.lane = {:lane} AND p.due_at <= {now}
    AND (
        p.reason = 'delayed' OR p.{key} IS NULL OR NOT EXISTS (
            SELECT 1
            FROM {parked} AS q
            WHERE q.target = p.target AND q.lane = p.lane AND q.{key} = p.{key} AND q.id < p.id
                AND q.reason <> 'delayed'
        )
    )
ORDER BY p.due_at, p.id
LIMIT {:limit}
