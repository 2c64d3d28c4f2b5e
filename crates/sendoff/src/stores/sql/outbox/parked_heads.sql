-- Those of one reason that are the first of their key.
SELECT p.id, p.lane, p.{key}, p.reason, p.due_at, p.cause, p.error
FROM {parked} AS p {force_by_reason}
WHERE p.target = {:target} AND p.reason = {:reason}
    AND (
        p.{key} IS NULL OR NOT EXISTS (
            SELECT 1
            FROM {parked} AS q
            WHERE q.target = p.target AND q.lane = p.lane AND q.{key} = p.{key} AND q.id < p.id
                AND q.reason <> 'delayed'
        )
    )
ORDER BY p.id
LIMIT {:limit}
