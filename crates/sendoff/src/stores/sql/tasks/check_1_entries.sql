-- The next entries, each with how its task stands.
SELECT n.task, t.status
FROM (SELECT e.task FROM {task_entry} AS e WHERE e.task > {:after} ORDER BY e.task LIMIT {:limit}) AS n
LEFT JOIN {task} AS t ON t.id = n.task
ORDER BY n.task
