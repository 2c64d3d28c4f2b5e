-- When the first parked event of each lane is due, and the first after now: one look into the index for each, however many there are.
SELECT {now} AS now, l.lane,
    (
        SELECT f.due_at
        FROM {parked} AS f
        WHERE f.target = l.target AND f.lane = l.lane AND f.due_at IS NOT NULL
        ORDER BY f.due_at
        LIMIT 1
    ) AS first_due,
    (
        SELECT n.due_at
        FROM {parked} AS n
        WHERE n.target = l.target AND n.lane = l.lane AND n.due_at > {now}
        ORDER BY n.due_at
        LIMIT 1
    ) AS next_due
FROM {lane} AS l
WHERE l.target = {:target} AND l.lane IN ({:lanes})
