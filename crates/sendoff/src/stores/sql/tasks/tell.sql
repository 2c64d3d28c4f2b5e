INSERT INTO {task_event} (task, event, attempt, owner, at, detail)
VALUES {:rows}
