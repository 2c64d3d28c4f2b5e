-- Takes in and claims, many rows under one row of ours. It sees what was committed before it began: the claims before this one, which its turn waited for. A settlement writes
-- the host's row and ends its claim in one transaction, so that what is seen unclaimed is still to be delivered.
-- The inner limit is one of few, so that few plans are made, and a plan knows that few rows are wanted.
INSERT INTO {bundle} (token, owner, lease_until, ids)
SELECT {token}, {owner}, statement_timestamp() + {lease} * interval '1 microsecond', array_agg(picked.id)
FROM (
    SELECT nearest.id
    FROM (
        SELECT h.{id} AS id
        FROM {host} AS h
        WHERE {wanted}
          AND h.{id} NOT IN (SELECT unnest(b.ids) FROM {bundle} AS b)
          -- Looked for only where anything is beside the table. OFFSET 0 keeps it a look-up for each row: an anti-join would read all that is there for every claim.
          AND CASE
              WHEN EXISTS (SELECT 1 FROM {side})
              THEN NOT EXISTS (SELECT 1 FROM {side} AS s WHERE s.id = h.{id} OFFSET 0)
              ELSE true
          END
        {order_by}
        LIMIT {limit_at_most}
    ) AS nearest
    LIMIT {limit}
) AS picked
HAVING COUNT(*) > 0
