-- Nothing can turn up at or below $5 any more: each lane's floor goes there, or to just below its first event.
UPDATE {lane} AS l
SET floor = known.floor
FROM (
    SELECT
        token.lane, token.epoch,
        least($5, (
            SELECT e.id - 1 FROM {event} AS e WHERE e.target = $1 AND e.lane = token.lane AND e.id > token.floor
            ORDER BY e.id LIMIT 1
        )) AS floor
    FROM unnest($2::smallint[], $3::bigint[], $4::bigint[]) AS token (lane, epoch, floor)
) AS known
WHERE l.target = $1 AND l.lane = known.lane AND l.epoch = known.epoch AND l.owner = $6 AND l.floor <> known.floor
RETURNING l.lane, l.floor
