-- One look at the primary key for each. Of a list MariaDB makes a scan of a small table, even with FORCE INDEX, and waits for the entries that others have locked.
DELETE e FROM ({:which}) AS k STRAIGHT_JOIN {task_entry} AS e ON e.task = k.task
