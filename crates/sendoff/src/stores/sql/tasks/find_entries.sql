SELECT e.task FROM {task_entry} AS e {force_primary} WHERE e.task IN ({:tasks}) ORDER BY e.task {:lock}
