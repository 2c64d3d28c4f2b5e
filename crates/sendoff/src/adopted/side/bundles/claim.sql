-- Takes in and claims, many rows under one row of ours. Each statement sees what was committed before it: the claims before this one, which the lock waits for. A settlement
-- writes the host's row and ends its claim in one transaction, so that what is seen unclaimed is still to be delivered.
BEGIN ISOLATION LEVEL READ COMMITTED;
-- The next claim need not wait for the disk: one that is lost with the server costs a redelivery, and its proof is never given out again.
SET LOCAL synchronous_commit = off;
-- The ids that are claimed are looked up in a hash table, which the planner does not use if it might not fit.
SET LOCAL work_mem = '64MB';
SELECT pg_advisory_xact_lock(hashtextextended({:lock}, 0));
-- OFFSET 0 keeps the look-up a look-up for each row: an anti-join would read all that is beside the table for every claim.
INSERT INTO {bundle} (token, owner, lease_until, ids)
SELECT {:token}, {:owner}, statement_timestamp() + {:lease} * interval '1 microsecond', array_agg(picked.id)
FROM (
    SELECT h.{id} AS id
    FROM {host} AS h
    WHERE {wanted}
      AND h.{id} NOT IN (SELECT unnest(b.ids) FROM {bundle} AS b)
      AND NOT EXISTS (SELECT 1 FROM {side} AS s WHERE s.id = h.{id} OFFSET 0)
    {order_by}
    LIMIT {limit}
) AS picked
HAVING COUNT(*) > 0;
COMMIT
