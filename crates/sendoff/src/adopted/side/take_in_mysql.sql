-- What is in the host's table and not beside it.
INSERT IGNORE INTO {side} (id, ordering_key)
SELECT h.{id}, {key}
FROM {host} AS h
WHERE {wanted}
  AND NOT EXISTS (SELECT 1 FROM {side} AS s WHERE s.id = h.{id})
{order_by}
LIMIT {:limit}
