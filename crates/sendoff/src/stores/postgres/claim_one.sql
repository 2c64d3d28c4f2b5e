-- The floor, second half: marks one row if it is still eligible. A concurrent claim of the same row is
-- waited for, and the condition is then checked again on what it left.
UPDATE {table} AS t
SET {set}
WHERE {key_in} AND ({eligible})
RETURNING {columns}
