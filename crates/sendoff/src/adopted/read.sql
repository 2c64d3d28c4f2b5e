-- The rows that a claim would take, as they are. Locks nothing.
SELECT {columns}
FROM {table} AS t
WHERE {eligible}
{order_by}
LIMIT {limit}
