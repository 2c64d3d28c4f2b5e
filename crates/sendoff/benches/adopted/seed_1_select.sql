SELECT id, aggregate_type, aggregate_id, event_type, payload
FROM "{schema}".outbox_events
WHERE status = 'PENDING'
ORDER BY created_at ASC
LIMIT 100
FOR UPDATE SKIP LOCKED
