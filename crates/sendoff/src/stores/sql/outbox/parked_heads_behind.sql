-- Those that waited for their turn and have it. Only so many are looked at: the most by far still wait.
SELECT p.id, p.lane, p.{key}, p.reason, p.due_at, p.cause, p.error
FROM (
    SELECT f.lane, f.id
    FROM {parked} AS f {force_by_reason}
    WHERE f.target = {:target} AND f.reason = 'behind'
    ORDER BY f.id
    LIMIT {:most}
) AS page
JOIN {parked} AS p ON p.target = {:target} AND p.lane = page.lane AND p.id = page.id
WHERE p.due_at IS NOT NULL AND NOT EXISTS (
    SELECT 1
    FROM {parked} AS q
    WHERE q.target = p.target AND q.lane = p.lane AND q.{key} = p.{key} AND q.id < p.id
        AND q.reason <> 'delayed'
)
ORDER BY p.id
LIMIT {:limit}
