-- Marks the locked rows by their key, in its order. Without the forced index a small table is scanned whole, and
-- two claimers that wait for each other's rows deadlock.
UPDATE {table} AS t {key_index}
SET {set}
WHERE {key_in}{still_eligible}
