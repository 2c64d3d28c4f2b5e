SELECT {now} AS now, MIN(p.due_at) AS next_due,
    CASE WHEN EXISTS (
        SELECT 1 FROM {parked} AS d WHERE d.target = {:target} AND d.lane IN ({:lanes}) AND d.due_at <= {now}
    ) THEN 1 ELSE 0 END AS is_due
FROM {parked} AS p
WHERE p.target = {:target} AND p.lane IN ({:lanes}) AND p.due_at > {now}
