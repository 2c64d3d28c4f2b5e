-- Deletes the locked rows by their key, in its order, with one look at it for each. A DELETE does not heed FORCE INDEX (MariaDB 10.11):
-- of a list of keys it makes a scan of a small table, and waits for the rows that others have locked. The first SELECT finds nothing; it
-- gives the keys the types and collations of their columns, without which no index would be looked at.
DELETE r
FROM (
    SELECT {key} FROM {table} AS t WHERE 1 = 0
    {key_rows}
) AS k
STRAIGHT_JOIN {table} AS r ON {key_join}
