-- Claims whose rows have gone from the host's table.
SELECT s.id FROM {side} AS s
WHERE NOT EXISTS (SELECT 1 FROM {host} AS h WHERE h.{id} = s.id)
LIMIT {:limit}
