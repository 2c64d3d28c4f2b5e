-- Ends claims that are still held, and writes what became of their rows into the host's table, in one statement.
WITH {leave}, single AS MATERIALIZED (
    SELECT s.id, s.attempts FROM {side} AS s
    WHERE s.id {in_ids} AND s.token = {:token} AND s.owner = {:owner}
    FOR UPDATE OF s
), held AS MATERIALIZED (
    SELECT single.id, single.attempts FROM single
    UNION ALL
    SELECT parted.id, 1 FROM parted WHERE NOT parted.stays
), written AS (
    {write}
), ended AS (
    DELETE FROM {side} AS s USING single WHERE s.id = single.id
)
SELECT held.id FROM held
