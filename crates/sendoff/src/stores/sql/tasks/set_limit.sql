INSERT INTO {task_limit} (kind, most) VALUES ({:kind}, {:most})
