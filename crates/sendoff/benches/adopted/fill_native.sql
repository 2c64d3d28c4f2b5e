INSERT INTO "{schema}".event (topic, key, payload)
SELECT 'bench', 'key-' || n % 1000, convert_to(jsonb_build_object('x', repeat('x', 200))::text, 'UTF8')
FROM generate_series(1, {events}) AS n
