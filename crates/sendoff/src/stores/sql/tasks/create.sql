INSERT INTO {task} (id, kind, payload, status, priority, unique_key, run_at, attempts_max, run_time, created_at)
VALUES {:rows}
