-- Locks up to {limit} eligible rows, stepping over what others hold. InnoDB locks what it scans: unless an index
-- serves the order, the first claimer locks every candidate and the next gets nothing. Hence the forced index.
SELECT {key}
FROM {table} AS t {scan_index}
WHERE {eligible}
{order_by}
LIMIT {limit}
FOR UPDATE SKIP LOCKED
