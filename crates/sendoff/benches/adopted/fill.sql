INSERT INTO "{schema}".outbox_events (aggregate_type, aggregate_id, event_type, payload, created_at)
SELECT 'bench', 'key-' || n % 1000, 'bench', jsonb_build_object('x', repeat('x', 200)), clock_timestamp()
FROM generate_series(1, {events}) AS n
