SELECT w.worker, w.name, w.target, w.started_at, w.lease_until,
    CASE WHEN w.lease_until < {now} THEN 1 ELSE 0 END AS expired,
    (SELECT COUNT(*) FROM {lane} AS l WHERE l.target = w.target AND l.owner = w.worker) AS lanes,
    m.value AS scope
FROM {worker} AS w
LEFT JOIN {meta} AS m ON m.name = {scope_name}
ORDER BY w.target, w.name, w.worker
LIMIT {:limit}
