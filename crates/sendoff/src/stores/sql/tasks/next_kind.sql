-- The next kind of this status: one look at the index for each kind.
SELECT t.kind FROM {task} AS t WHERE t.status = {:status} AND t.kind > {:after} ORDER BY t.kind LIMIT 1
