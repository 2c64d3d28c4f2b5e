SELECT s.event_id
FROM {inbox_seen} AS s {force_by_time}
WHERE s.consumer = {:consumer} AND s.seen_at < {:before}
ORDER BY s.seen_at
LIMIT {:limit}
