-- All lanes in one trip, each from its floor, those named first served first. A large payload comes later, if there is room for it.
SELECT page.*
FROM unnest($2::smallint[], $3::bigint[], $4::bigint[]) AS want (lane, above, most)
CROSS JOIN LATERAL (
    SELECT
        e.ctid AS address, e.id, e.lane, e.topic, e.key,
        CASE WHEN octet_length(e.payload) <= 16384 THEN e.payload END AS payload,
        CASE WHEN octet_length(e.payload) > 16384 THEN octet_length(e.payload) END AS bytes,
        e.content_type, e.headers, e.event_id, e.created_at,
        CASE WHEN e.deliver_at > statement_timestamp() THEN e.deliver_at END AS later,
        -- Looked for only where anything is held up at all. The order is the index's: without it the planner may read the whole table.
        CASE WHEN (
            SELECT 1
            FROM {parked} AS any_of
            WHERE any_of.target = $1 AND any_of.reason <> 'delayed'
            ORDER BY any_of.lane, any_of.key, any_of.id
            LIMIT 1
        ) IS NOT NULL THEN (
            SELECT
                CASE
                    WHEN p.reason = 'diverted' THEN 'diverted'
                    WHEN p.due_at <= statement_timestamp() THEN 'draining'
                    ELSE 'held'
                END
            FROM {parked} AS p
            WHERE p.target = $1 AND p.lane = want.lane AND p.key = e.key AND p.reason <> 'delayed'
            ORDER BY p.id
            LIMIT 1
        ) END AS hold
    FROM {event} AS e
    WHERE e.target = $1 AND e.lane = want.lane AND e.id > want.above
    ORDER BY e.id
    LIMIT want.most
) AS page
LIMIT $5
