SELECT t.id, t.attempt, t.owner FROM {task} AS t {force_by_status}
WHERE t.status = 'running' AND t.owner = {:worker}
LIMIT {:limit}
