-- Any number of events with one statement text: the server plans it once. Rows get their ids in the arrays' order.
INSERT INTO {event} (target, topic, {key}, payload, content_type, headers, event_id, deliver_at)
SELECT n.target, n.topic, n.{key}, n.payload, n.content_type, n.headers::jsonb, n.event_id, n.deliver_at
FROM unnest(
    $1::text[], $2::text[], $3::text[], $4::bytea[], $5::text[], $6::text[], $7::uuid[], $8::timestamptz[]
) AS n (target, topic, {key}, payload, content_type, headers, event_id, deliver_at)
