-- Finds, locks and marks up to {limit} rows in one statement.
-- SKIP LOCKED steps over what others hold. MATERIALIZED is the fence that keeps the LIMIT: inlined as
-- `IN (SELECT … LIMIT n)`, the subselect may be run again for every row, and claims them all.
-- NO KEY UPDATE is the lock the UPDATE itself takes: rows that foreign keys point at are not skipped.
-- The picked keys reach the UPDATE as an array where one key column is open (the claim fixes the others): joined, a table of 20,000 rows
-- is read whole for every claim. RETURNING keeps no order, so the position of each row is joined to it at the end.
WITH picked AS MATERIALIZED (
    SELECT {key}
    FROM {table} AS t
    WHERE {eligible}
    {order_by}
    LIMIT {limit}
    FOR NO KEY UPDATE OF t SKIP LOCKED
), numbered AS MATERIALIZED (
    SELECT picked.*, row_number() OVER () AS n FROM picked
), claimed AS (
    UPDATE {table} AS t
    SET {set}
    {key_picked}
    RETURNING {columns}, {returned_key}
)
SELECT claimed.*, p.n AS sendoff_n
FROM claimed JOIN numbered AS p ON {claimed_join}
