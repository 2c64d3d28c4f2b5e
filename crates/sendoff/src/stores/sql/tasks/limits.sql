SELECT l.kind, l.most FROM {task_limit} AS l ORDER BY l.kind LIMIT {:limit}
