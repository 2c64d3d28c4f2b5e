UPDATE {lane} AS l
SET floor = known.floor
FROM unnest($2::smallint[], $3::bigint[], $4::bigint[]) AS known (lane, epoch, floor)
WHERE l.target = $1 AND l.lane = known.lane AND l.epoch = known.epoch AND l.owner = $5
