-- What is in the host's table and not beside it, in the order in which it would be taken in. Changes nothing.
SELECT h.{id} FROM {host} AS h
WHERE {wanted}
  AND NOT EXISTS (SELECT 1 FROM {side} AS s WHERE s.id = h.{id}){and_in_no_bundle}
{order_by}
LIMIT {:limit}
