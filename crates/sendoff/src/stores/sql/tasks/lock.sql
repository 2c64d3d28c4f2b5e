SELECT
    t.id, t.status, t.attempt, t.attempts_max, t.owner, CASE WHEN t.lease_until <= {now} THEN 1 ELSE 0 END AS is_overdue
FROM {task} AS t {force_primary}
WHERE t.id IN ({:tasks})
ORDER BY t.id {:lock}
