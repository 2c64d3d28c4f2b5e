-- What is there already stays as it is.
INSERT INTO {table} (event_id, target, topic, "key", payload, content_type, headers, position, epoch, created_at)
VALUES {rows}
ON CONFLICT (event_id) DO NOTHING
