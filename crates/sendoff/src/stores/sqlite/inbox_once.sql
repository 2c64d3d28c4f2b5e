-- Not INSERT OR IGNORE, which would pass over what a check refuses as well.
INSERT INTO {inbox_seen} (consumer, event_id, seen_at)
VALUES {:rows}
ON CONFLICT (consumer, event_id) DO NOTHING
RETURNING event_id AS answer
