SELECT {now} AS now, MIN(p.due_at) AS next_due
FROM {parked} AS p
WHERE p.target = {:target} AND p.lane IN ({:lanes}) AND p.due_at > {now}
