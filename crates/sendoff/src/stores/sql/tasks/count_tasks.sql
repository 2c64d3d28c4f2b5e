SELECT COUNT(*) AS tasks FROM (
    SELECT 1 AS one FROM {task} AS t WHERE t.status = {:status} AND t.kind = {:kind} LIMIT {:limit}
) AS c
