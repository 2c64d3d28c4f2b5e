SELECT e.kind FROM {task_entry} AS e WHERE e.waiting = {:waiting} AND e.kind > {:after} ORDER BY e.kind LIMIT 1
