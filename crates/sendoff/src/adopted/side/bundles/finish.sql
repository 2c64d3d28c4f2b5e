-- Ends a claim of which every row became the same, and writes that into the host's table. A bundle only ever shrinks: one that has as many rows as it was claimed with has just those.
WITH ended AS (
    DELETE FROM {bundle} AS b
    WHERE b.token = {:token} AND b.owner = {:owner} AND cardinality(b.ids) = {:count}
    RETURNING b.ids
), held AS MATERIALIZED (
    SELECT unnest(ended.ids) AS id, 1 AS attempts FROM ended
), written AS (
    {write}
)
SELECT COUNT(*) FROM held
