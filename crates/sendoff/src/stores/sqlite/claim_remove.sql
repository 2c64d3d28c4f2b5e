-- Deletes what claim_1_pick.sql picked, in the same transaction; no other writer has come between.
DELETE FROM {table} AS t
WHERE {key_in}
RETURNING {bare_columns}, {returned_key}
