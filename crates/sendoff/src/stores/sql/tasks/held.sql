SELECT t.id, t.attempt, t.owner FROM {task} AS t {force_primary} WHERE t.id IN ({:tasks}) AND t.status = 'running'
