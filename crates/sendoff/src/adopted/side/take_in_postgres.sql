-- What is in the host's table and not beside it. One at a time: a second one would wait for the first, and find nothing new.
INSERT INTO {side} (id, ordering_key)
SELECT h.{id}, {key}
FROM {host} AS h
WHERE (SELECT pg_try_advisory_xact_lock(hashtextextended({:lock}, 0)))
  AND {wanted}
  AND NOT EXISTS (SELECT 1 FROM {side} AS s WHERE s.id = h.{id})
{order_by}
LIMIT {:limit}
ON CONFLICT DO NOTHING
