DELETE FROM {task_entry} WHERE task IN ({:tasks})
