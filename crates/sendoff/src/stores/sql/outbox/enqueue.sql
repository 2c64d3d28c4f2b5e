INSERT INTO {event} (target, topic, {key}, payload, content_type, headers, event_id, deliver_at)
VALUES {:rows}
