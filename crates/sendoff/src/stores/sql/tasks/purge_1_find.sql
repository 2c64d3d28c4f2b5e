-- The oldest of this status and kind; those of them that finished before then.
SELECT o.id
FROM (
    SELECT t.id, t.finished_at FROM {task} AS t WHERE t.status = {:status} AND t.kind = {:kind} ORDER BY t.id LIMIT {:window}
) AS o
WHERE o.finished_at < {:before}
ORDER BY o.id
LIMIT {:limit}
