UPDATE {task_entry} {force_primary} SET waiting = 0 WHERE task IN ({:tasks}) AND waiting = 1
