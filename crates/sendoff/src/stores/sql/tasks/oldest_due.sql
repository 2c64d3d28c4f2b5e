SELECT e.due_at FROM {task_entry} AS e {force_by_due} WHERE e.waiting = 0 ORDER BY e.due_at LIMIT 1
