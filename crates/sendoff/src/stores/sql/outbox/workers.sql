SELECT w.worker, w.name, w.target, w.started_at, w.lease_until,
    CASE WHEN w.lease_until < {now} THEN 1 ELSE 0 END AS expired,
    (SELECT COUNT(*) FROM {lane} AS l WHERE l.target = w.target AND l.owner = w.worker) AS lanes
FROM {worker} AS w
ORDER BY w.target, w.name, w.worker
LIMIT {:limit}
