-- All that may keep an event of a lane from being delivered, but its own key. There may be no such lane yet.
SELECT {now} AS now,
    (SELECT COUNT(*) FROM {meta} AS m WHERE m.name = {:paused}) AS paused,
    (SELECT COUNT(*) FROM {worker} AS v WHERE v.target = {:target} AND v.lease_until >= {now}) AS workers,
    l.owner, w.name, l.lease_until, l.floor
FROM (SELECT 1 AS one) AS o
LEFT JOIN {lane} AS l ON l.target = {:target} AND l.lane = {:lane}
LEFT JOIN {worker} AS w ON w.worker = l.owner
