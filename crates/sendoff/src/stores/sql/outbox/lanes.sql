SELECT l.lane, l.owner, w.name, l.lease_until, CASE WHEN l.lease_until < {now} THEN 1 ELSE 0 END AS expired,
    l.epoch, l.floor, l.crashes
FROM {lane} AS l
LEFT JOIN {worker} AS w ON w.worker = l.owner
WHERE l.target = {:target}
ORDER BY l.lane
