-- What is there already stays as it is.
INSERT INTO {table} (event_id, target, topic, key, payload, content_type, headers, position, epoch, created_at)
SELECT
    new.event_id, new.target, new.topic, new.key, new.payload, new.content_type, new.headers::jsonb, new.position,
    new.epoch, to_timestamp(0) + new.micros * interval '1 microsecond'
FROM unnest(
    $1::uuid[], $2::text[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::text[], $8::bigint[], $9::bigint[], $10::bigint[]
) WITH ORDINALITY AS new (
    event_id, target, topic, key, payload, content_type, headers, position, epoch, micros, number
)
ORDER BY new.number
ON CONFLICT (event_id) DO NOTHING
