-- The floor, second half: marks one row if it is still eligible. A concurrent claim of the same row is
-- waited for, and the condition is then checked on what it left.
UPDATE {table} AS t {key_index}
SET {set}
WHERE {key_in} AND ({eligible})
