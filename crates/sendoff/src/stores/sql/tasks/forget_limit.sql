DELETE FROM {task_limit} WHERE kind = {:kind}
