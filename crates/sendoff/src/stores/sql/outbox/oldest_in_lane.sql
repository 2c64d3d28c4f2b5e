SELECT e.created_at
FROM {event} AS e {force_by_lane}
WHERE e.target = {:target} AND e.lane = {:lane} AND e.id > {:above}
ORDER BY e.id
LIMIT 1
