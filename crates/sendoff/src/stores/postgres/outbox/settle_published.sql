-- The leases are checked and locked (FOR SHARE: no new row version, and no takeover before this commits), and what was published is
-- deleted: by its address, which its position must confirm.
WITH fence AS MATERIALIZED (
    SELECT l.lane
    FROM {lane} AS l
    JOIN unnest($2::smallint[], $3::bigint[]) AS token (lane, epoch) ON token.lane = l.lane AND token.epoch = l.epoch
    WHERE l.target = $1 AND l.owner = $4
    FOR SHARE OF l
), gone AS (
    DELETE FROM {event} AS e
    USING unnest($5::tid[], $6::smallint[], $7::bigint[]) AS row_of (address, lane, id), fence
    WHERE e.ctid = row_of.address AND e.target = $1 AND e.lane = row_of.lane AND e.id = row_of.id
        AND fence.lane = row_of.lane
    RETURNING e.id
)
SELECT
    coalesce((SELECT array_agg(fence.lane) FROM fence), ARRAY[]::smallint[]) AS current,
    coalesce((SELECT array_agg(gone.id) FROM gone), ARRAY[]::bigint[]) AS gone,
    CASE WHEN $8::boolean THEN set_config('synchronous_commit', 'off', true) END AS commit
