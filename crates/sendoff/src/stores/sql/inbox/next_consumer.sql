-- The next consumer in the order of their names: one look into each index, however many events there are.
SELECT MIN(n.consumer) AS consumer
FROM (
    SELECT MIN(s.consumer) AS consumer FROM {inbox_seen} AS s WHERE s.consumer > {:after}
    UNION ALL
    SELECT MIN(o.consumer) AS consumer FROM {inbox_order} AS o WHERE o.consumer > {:after}
) AS n
