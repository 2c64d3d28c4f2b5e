-- Ids that stand more than once among the last that were delivered.
SELECT COUNT(*) FROM (
    SELECT p.event_id
    FROM (
        SELECT h.event_id FROM {published} AS h WHERE h.target = {1} ORDER BY h.published_at DESC LIMIT 10000
    ) AS p
    GROUP BY p.event_id
    HAVING COUNT(*) > 1
) AS twice
