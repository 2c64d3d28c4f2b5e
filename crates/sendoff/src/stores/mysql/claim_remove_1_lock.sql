-- Locks up to {limit} eligible rows as claim_1_lock.sql does, and reads them at once: nothing of them is going to change.
SELECT {columns}, {returned_key}
FROM {table} AS t {scan_index}
WHERE {eligible}
{order_by}
LIMIT {limit}
FOR UPDATE SKIP LOCKED
