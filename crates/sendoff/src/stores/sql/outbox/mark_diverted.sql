-- Stands for a dead event among the parked, without its content: the rest of its key goes the same way.
INSERT INTO {parked} (
    target, lane, id, topic, {key}, payload, content_type, headers, event_id, created_at,
    reason, due_at, failures, crashes, cause, error, parked_at
)
SELECT d.target, d.lane, d.id, d.topic, d.{key}, {:empty}, NULL, NULL, d.event_id, d.created_at,
    'diverted', {:due}, d.failures, d.crashes, d.cause, d.error, {now}
FROM {dead} AS d
WHERE d.target = {:target} AND d.id = {:id}
