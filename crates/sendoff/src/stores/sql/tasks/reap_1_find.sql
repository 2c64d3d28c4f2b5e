-- As many rows as there are tasks running are looked at, and no more.
SELECT t.id, t.attempt, t.owner, CASE WHEN t.lease_until <= {now} THEN 1 ELSE 0 END AS is_overdue
FROM {task} AS t {force_by_status}
LEFT JOIN {task_worker} AS w ON w.worker = t.owner
WHERE t.status = 'running' AND (w.worker IS NULL OR w.lease_until <= {now} OR t.lease_until <= {now})
LIMIT {:limit}
