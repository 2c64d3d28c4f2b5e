-- The floor, second half: marks one row if it is still eligible. Writers are serialised, so the condition is
-- checked on what the one before left.
UPDATE {table} AS t
SET {set}
WHERE {key_in} AND ({eligible})
RETURNING {bare_columns}
