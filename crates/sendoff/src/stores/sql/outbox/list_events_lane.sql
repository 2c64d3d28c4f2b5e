SELECT f.lane, f.id
FROM {event} AS f {force_by_lane}
WHERE f.target = {:target} AND f.lane = {:lane} AND f.id > {:above}
ORDER BY f.id
LIMIT {:limit}
