-- The same on a cluster, where a lock does not always keep what it should: only what is still eligible. MariaDB takes no condition
-- that reads the table it deletes from, unless it stands in a SELECT that is run before; the LIMIT, which all keys fit into, sees to that.
DELETE r
FROM (
    SELECT {key}
    FROM {table} AS t {key_index}
    WHERE {key_in} AND ({eligible})
    LIMIT {key_count}
) AS k
STRAIGHT_JOIN {table} AS r ON {key_join}
