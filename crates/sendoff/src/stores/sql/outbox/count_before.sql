SELECT COUNT(*)
FROM (
    SELECT 1 AS one
    FROM {event} AS e {force_by_lane}
    WHERE e.target = {:target} AND e.lane = {:lane} AND e.id > {:above} AND e.id < {:id}
    LIMIT {:limit}
) AS c
