-- The leases are checked and locked (FOR SHARE: no new row version, and no takeover before this commits), and what was published is
-- deleted: by its address, where one of the positions must be found. An address that was used again has a position that nobody named.
WITH fence AS MATERIALIZED (
    SELECT l.lane
    FROM {lane} AS l
    JOIN unnest($2::smallint[], $3::bigint[]) AS token (lane, epoch) ON token.lane = l.lane AND token.epoch = l.epoch
    WHERE l.target = $1 AND l.owner = $4
    FOR SHARE OF l
), gone AS (
    DELETE FROM {event} AS e
    WHERE e.ctid = ANY ($5::tid[]) AND e.target = $1 AND e.lane = ANY (ARRAY(SELECT fence.lane FROM fence))
        -- IS TRUE keeps it a look into a hash table: as a join, or as = ANY of an array, each row would be compared with each position.
        AND (e.id IN (SELECT unnest($6::bigint[]))) IS TRUE
    RETURNING e.id
)
SELECT
    coalesce((SELECT array_agg(fence.lane) FROM fence), ARRAY[]::smallint[]) AS current,
    coalesce((SELECT array_agg(gone.id) FROM gone), ARRAY[]::bigint[]) AS gone,
    CASE WHEN $7::boolean THEN set_config('synchronous_commit', 'off', true) END AS commit
