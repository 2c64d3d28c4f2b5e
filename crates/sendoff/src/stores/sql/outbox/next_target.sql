-- The next target in the order of their names: one look into each index, however many events there are.
SELECT MIN(n.target) AS target
FROM (
    SELECT MIN(l.target) AS target FROM {lane} AS l WHERE l.target > {:after}
    UNION ALL
    SELECT MIN(e.target) AS target FROM {event} AS e WHERE e.target > {:after}
    UNION ALL
    SELECT MIN(p.target) AS target FROM {parked} AS p WHERE p.target > {:after}
    UNION ALL
    SELECT MIN(d.target) AS target FROM {dead} AS d WHERE d.target > {:after}
    UNION ALL
    SELECT MIN(k.target) AS target FROM {published} AS k WHERE k.target > {:after}
) AS n
