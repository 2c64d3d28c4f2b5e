-- The floor, second half: deletes one row if it is still eligible. A concurrent claim of the same row is
-- waited for, and the condition is then checked again on what it left.
DELETE FROM {table} AS t
WHERE {key_in} AND ({eligible})
RETURNING {columns}
