DELETE FROM {task_event} WHERE task IN ({:tasks})
