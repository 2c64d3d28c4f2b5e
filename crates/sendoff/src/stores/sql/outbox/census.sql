SELECT w.worker, (SELECT COUNT(*) FROM {meta} AS m WHERE m.name = {:paused}) AS paused, m.value AS scope
FROM {worker} AS w
LEFT JOIN {meta} AS m ON m.name = {scope_name}
WHERE w.target = {:target} AND w.lease_until >= {now}
