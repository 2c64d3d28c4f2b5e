-- Marks what was picked; no other writer has come between.
UPDATE {table} AS t
SET {set}
WHERE {key_in}
RETURNING {bare_columns}, {returned_key}
