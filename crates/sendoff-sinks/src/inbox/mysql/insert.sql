-- What is there already stays as it is. Not INSERT IGNORE, which would cut what does not fit.
INSERT INTO {table} (event_id, target, topic, `key`, payload, content_type, headers, position, epoch, created_at)
VALUES {rows}
ON DUPLICATE KEY UPDATE event_id = VALUES(event_id)
