-- Takes in and claims in one statement. Rows that another claims at this moment are stepped over; those that another has claimed since this
-- statement began are there already, and are left out.
-- OFFSET 0 keeps the look-up a look-up for each row: an anti-join would read all that is beside the table for every claim.
WITH picked AS MATERIALIZED (
    SELECT h.{id} AS sendoff_id, {columns}, row_number() OVER () AS sendoff_n
    FROM (
        SELECT h.* FROM {host} AS h
        WHERE {wanted} AND NOT EXISTS (SELECT 1 FROM {side} AS s WHERE s.id = h.{id} OFFSET 0)
        {order_by}
        LIMIT {limit}
        FOR NO KEY UPDATE OF h SKIP LOCKED
    ) AS h
), claimed AS (
    INSERT INTO {side} (id, owner, token, lease_until, attempts)
    SELECT picked.sendoff_id, {:owner}, {:token}, statement_timestamp() + {:lease} * interval '1 microsecond', 1
    FROM picked
    ON CONFLICT DO NOTHING
    RETURNING id
)
SELECT picked.* FROM picked JOIN claimed ON claimed.id = picked.sendoff_id ORDER BY picked.sendoff_n
