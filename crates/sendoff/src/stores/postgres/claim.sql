-- Finds, locks and marks up to {limit} rows in one statement.
-- SKIP LOCKED steps over what others hold. MATERIALIZED is the fence that keeps the LIMIT: inlined as
-- `IN (SELECT … LIMIT n)`, the subselect may be run again for every row, and claims them all.
-- NO KEY UPDATE is the lock the UPDATE itself takes: rows that foreign keys point at are not skipped.
-- RETURNING keeps no order, so every row brings the position it was picked at.
WITH picked AS MATERIALIZED (
    SELECT {key}
    FROM {table} AS t
    WHERE {eligible}
    {order_by}
    LIMIT {limit}
    FOR NO KEY UPDATE OF t SKIP LOCKED
), numbered AS (
    SELECT picked.*, row_number() OVER () AS n FROM picked
)
UPDATE {table} AS t
SET {set}
FROM numbered AS p
WHERE {key_join}
RETURNING {columns}, p.n AS sendoff_n
