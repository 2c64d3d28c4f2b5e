-- The claims that are still held, locked where the database locks rows.
SELECT s.id FROM {side} AS s
WHERE s.id {in_ids} AND s.token = {:token} AND s.owner = {:owner}
{for_update}
