SELECT COUNT(*) AS entries FROM (
    SELECT 1 AS one FROM {task_entry} AS e WHERE e.waiting = {:waiting} AND e.kind = {:kind} LIMIT {:limit}
) AS c
