-- One lane, from its floor. The page is measured before it is read: a lane does not go on once it has given enough bytes.
SELECT e.id, e.lane, e.topic, e.{key}, e.payload, e.content_type, e.headers, e.event_id, e.created_at,
    CASE WHEN e.deliver_at > {now} THEN e.deliver_at END AS later,
    (
        SELECT CASE WHEN p.reason = 'diverted' THEN 'diverted' WHEN p.due_at <= {now} THEN 'draining' ELSE 'held' END
        FROM {parked} AS p
        WHERE p.target = e.target AND p.lane = e.lane AND p.{key} = e.{key} AND p.reason <> 'delayed'
        ORDER BY p.id
        LIMIT 1
    ) AS hold
FROM (
    SELECT page.id, SUM(page.bytes) OVER (ORDER BY page.id) - page.bytes AS bytes_before
    FROM (
        SELECT f.id, octet_length(f.payload) AS bytes
        FROM {event} AS f {force_by_lane}
        WHERE f.target = {:target} AND f.lane = {:lane} AND f.id > {:above}
        ORDER BY f.id
        LIMIT {:limit}
    ) AS page
) AS measured
JOIN {event} AS e ON e.target = {:target} AND e.lane = {:lane} AND e.id = measured.id
WHERE measured.bytes_before < {:bytes}
