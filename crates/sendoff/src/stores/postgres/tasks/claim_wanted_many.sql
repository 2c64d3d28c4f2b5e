SELECT c.kind, COUNT(*) AS many
FROM (
    SELECT k.kind
    FROM unnest({:kinds}::text[]) AS k (kind)
    CROSS JOIN LATERAL (
        SELECT e.turn, e.due_at, e.task
        FROM {task_entry} AS e
        WHERE e.waiting = 0 AND e.kind = k.kind
        ORDER BY e.turn, e.due_at, e.task
        LIMIT {:limit}
    ) AS s
    WHERE EXISTS (SELECT 1 FROM {task_worker} AS a WHERE a.worker = {:worker} AND a.lease_until > {now})
        AND NOT EXISTS (SELECT 1 FROM {task_limit} AS l WHERE l.kind = k.kind)
    ORDER BY s.turn, s.due_at, s.task
    LIMIT {:limit}
) AS c
GROUP BY c.kind
