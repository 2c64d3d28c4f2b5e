-- What is dead above this position still diverts its key.
INSERT INTO {parked} (
    target, lane, id, topic, {key}, payload, content_type, headers, event_id, created_at,
    reason, due_at, failures, crashes, cause, error, parked_at
)
SELECT d.target, d.lane, d.id, d.topic, d.{key}, {:empty}, NULL, NULL, d.event_id, d.created_at,
    'diverted', {now}, d.failures, d.crashes, d.cause, d.error, {now}
FROM {dead} AS d
WHERE d.target = {:target} AND d.lane = {:lane} AND d.{key} = {:key} AND d.id > {:above}
ORDER BY d.id
LIMIT 1
