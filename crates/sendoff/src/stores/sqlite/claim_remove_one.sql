-- The floor, second half: deletes one row if it is still eligible. Writers are serialised, so the condition is
-- checked on what the one before left.
DELETE FROM {table} AS t
WHERE {key_in} AND ({eligible})
RETURNING {bare_columns}
