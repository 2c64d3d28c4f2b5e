-- What one lane has, from where its reading begins.
SELECT f.id, f.lane, octet_length(f.payload) AS bytes
FROM {event} AS f {force_by_lane}
WHERE f.target = {:target} AND f.lane = {:lane} AND f.id > {:above}
ORDER BY f.id
LIMIT {:limit}
