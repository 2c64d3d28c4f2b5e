SELECT COUNT(*) AS running FROM (
    SELECT 1 AS one FROM {task} AS t {force_by_status} WHERE t.status = 'running' AND t.kind = {:kind} LIMIT {:limit}
) AS c
