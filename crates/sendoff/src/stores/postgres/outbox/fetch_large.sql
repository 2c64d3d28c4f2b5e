SELECT e.id, e.payload
FROM {event} AS e
JOIN unnest($2::smallint[], $3::bigint[]) AS want (lane, id) ON e.lane = want.lane AND e.id = want.id
WHERE e.target = $1
