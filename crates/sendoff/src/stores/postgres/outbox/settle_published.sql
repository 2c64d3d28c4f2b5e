-- The leases are checked and locked (FOR SHARE: no new row version, and no takeover before this commits), and what was published is deleted by its address. All of it, or nothing:
-- addresses are visited in their order, and what was there must be the positions in that order. If it is not, the division fails, and nothing was deleted; then they are deleted by name.
WITH fence AS MATERIALIZED (
    SELECT l.lane
    FROM {lane} AS l
    JOIN unnest($2::smallint[], $3::bigint[]) AS token (lane, epoch) ON token.lane = l.lane AND token.epoch = l.epoch
    WHERE l.target = $1 AND l.owner = $4
    FOR SHARE OF l
), gone AS (
    DELETE FROM {event} AS e
    WHERE e.ctid = ANY ($5::tid[]) AND e.target = $1 AND e.lane = ANY (ARRAY(SELECT fence.lane FROM fence))
    RETURNING e.id
)
SELECT CASE
    WHEN (SELECT array_agg(gone.id) FROM gone) IS DISTINCT FROM $6::bigint[] THEN (1 / (SELECT 0))::text
    WHEN $7::boolean THEN set_config('synchronous_commit', 'off', true)
END AS commit
