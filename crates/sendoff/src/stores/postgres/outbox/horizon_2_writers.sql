-- Who may still commit a position at or below it: an INSERT locks the table before it takes its position, and holds the lock to its end.
SELECT lock.virtualtransaction
FROM pg_locks AS lock
WHERE lock.locktype = 'relation' AND lock.mode = 'RowExclusiveLock' AND lock.relation = $1::regclass
    AND lock.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
