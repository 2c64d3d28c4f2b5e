-- Finds, locks and deletes up to {limit} rows in one statement, and returns them as they were.
-- As claim.sql, for the same reasons, but for the lock: FOR UPDATE is the one the DELETE itself takes, so that a row
-- which somebody is just pointing a foreign key at is stepped over.
WITH picked AS MATERIALIZED (
    SELECT {key}
    FROM {table} AS t
    WHERE {eligible}
    {order_by}
    LIMIT {limit}
    FOR UPDATE OF t SKIP LOCKED
), numbered AS MATERIALIZED (
    SELECT picked.*, row_number() OVER () AS n FROM picked
), claimed AS (
    DELETE FROM {table} AS t
    {key_picked}
    RETURNING {columns}, {returned_key}
)
SELECT claimed.*, p.n AS sendoff_n
FROM claimed JOIN numbered AS p ON {claimed_join}
