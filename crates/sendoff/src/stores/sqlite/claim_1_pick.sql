-- Inside BEGIN IMMEDIATE, so nobody else can write until the rows are marked. Picked apart from the mark
-- because RETURNING keeps no order and cannot say in which one the rows were found.
SELECT {key}
FROM {table} AS t
WHERE {eligible}
{order_by}
LIMIT {limit}
