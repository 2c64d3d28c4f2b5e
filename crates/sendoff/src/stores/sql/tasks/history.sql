SELECT v.event, v.attempt, v.owner, v.at, v.detail FROM {task_event} AS v WHERE v.task = {:task} ORDER BY v.id LIMIT {:limit}
