-- Back among the parked: behind what is there of its key, or due where it has none. Its attempts begin anew; what went wrong stays to be read.
INSERT INTO {parked} (
    target, lane, id, topic, {key}, payload, content_type, headers, event_id, created_at,
    reason, due_at, failures, crashes, cause, error, parked_at
)
SELECT d.target, d.lane, d.id, d.topic, d.{key}, d.payload, d.content_type, d.headers, d.event_id, d.created_at,
    CASE WHEN d.{key} IS NULL OR d.cause = 'corrupt' THEN 'retry' ELSE 'behind' END,
    -- Its key may be one that cannot be read, and so cannot be promoted by it.
    CASE WHEN d.{key} IS NULL OR d.cause = 'corrupt' THEN {now} END,
    0, 0, d.cause, d.error, {now}
FROM {dead} AS d
WHERE d.target = {:target} AND d.id IN ({:ids})
