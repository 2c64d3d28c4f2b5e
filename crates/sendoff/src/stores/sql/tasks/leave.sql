DELETE FROM {task_worker} WHERE worker = {:worker}
