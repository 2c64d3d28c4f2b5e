SELECT w.worker, w.name, w.kinds, w.started_at, w.lease_until, CASE WHEN w.lease_until > {now} THEN 1 ELSE 0 END AS is_alive
FROM {task_worker} AS w
ORDER BY w.worker
LIMIT {:limit}
