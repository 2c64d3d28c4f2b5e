SELECT w.worker, (SELECT COUNT(*) FROM {meta} AS m WHERE m.name = {:paused}) AS paused
FROM {worker} AS w
WHERE w.target = {:target} AND w.lease_until >= {now}
