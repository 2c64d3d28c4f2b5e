-- A worker is forgotten when it has nothing left to be returned.
DELETE FROM {task_worker}
WHERE lease_until <= {now} AND NOT EXISTS (
    SELECT 1 FROM {task} AS t WHERE t.status = 'running' AND t.owner = {task_worker}.worker
)
