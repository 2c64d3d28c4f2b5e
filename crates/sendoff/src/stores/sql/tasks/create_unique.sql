-- A live task of the same key is left as it is.
INSERT INTO {task} (id, kind, payload, status, priority, unique_key, run_at, attempts_max, run_time, created_at)
VALUES {:rows}
{or_same_key}
