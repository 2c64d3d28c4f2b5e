-- Who is second waits for the first one's end: after its commit the row is there and is not returned, after its rollback it is ours.
INSERT INTO {inbox_seen} (consumer, event_id, seen_at)
VALUES {:rows}
ON CONFLICT (consumer, event_id) DO NOTHING
RETURNING event_id::text AS answer
