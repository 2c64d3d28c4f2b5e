-- The floor, second half: locks one row if it is still eligible, and reads it. A concurrent claim of the same row is waited for,
-- and the condition is then checked on what it left. claim_remove_2_delete.sql does the rest.
SELECT {columns}, {returned_key}
FROM {table} AS t {key_index}
WHERE {key_in} AND ({eligible})
FOR UPDATE
