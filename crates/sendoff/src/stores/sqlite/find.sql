-- The floor, first half: which rows look eligible. Locks nothing.
SELECT {found_key}
FROM {table} AS t
WHERE {eligible}
{order_by}
LIMIT {limit}
