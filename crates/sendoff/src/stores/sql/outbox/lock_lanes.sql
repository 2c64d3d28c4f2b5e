-- In rising order, as everybody does.
SELECT l.lane, l.owner, CASE WHEN l.lease_until < {now} THEN 1 ELSE 0 END AS expired
FROM {lane} AS l
WHERE l.target = {:target} AND l.lane IN ({:lanes})
ORDER BY l.target, l.lane
{:lock}
