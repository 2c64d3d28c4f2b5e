-- The next ready tasks of a kind, each with its entry if it has one.
SELECT n.id, e.task
FROM (
    SELECT t.id FROM {task} AS t {force_by_status} WHERE t.status = 'ready' AND t.kind = {:kind} AND t.id > {:after}
    ORDER BY t.id LIMIT {:limit}
) AS n
LEFT JOIN {task_entry} AS e ON e.task = n.id
ORDER BY n.id
