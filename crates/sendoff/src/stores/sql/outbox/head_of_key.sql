-- What a key waits for: the first of it that is parked, and is not just to be delivered later.
SELECT p.id, p.event_id, CASE WHEN p.due_at <= {now} THEN 1 ELSE 0 END AS is_due
FROM {parked} AS p {force_by_key}
WHERE p.target = {:target} AND p.lane = {:lane} AND p.{key} = {:key} AND p.reason <> 'delayed'
ORDER BY p.id
LIMIT 1
