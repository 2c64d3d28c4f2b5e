-- Every count in one snapshot, none of them further than the limit.
SELECT
    (SELECT COUNT(*) FROM (
        SELECT 1 AS one FROM {event} AS e WHERE e.target = {:target} AND e.lane IN ({:free}) LIMIT {:limit}
    ) AS c) AS free,
    (SELECT COUNT(*) FROM (
        SELECT 1 AS one FROM {event} AS e WHERE e.target = {:target} AND e.lane IN ({:leased}) LIMIT {:limit}
    ) AS c) AS leased,
    (SELECT COUNT(*) FROM (
        SELECT 1 AS one FROM {event} AS e WHERE e.target = {:target} AND e.lane IN ({:expired}) LIMIT {:limit}
    ) AS c) AS expired,
    (SELECT COUNT(*) FROM (
        SELECT 1 AS one FROM {parked} AS p WHERE p.target = {:target} AND p.reason = 'delayed' LIMIT {:limit}
    ) AS c) AS later,
    (SELECT COUNT(*) FROM (
        SELECT 1 AS one FROM {parked} AS p
        WHERE p.target = {:target} AND p.reason IN ('retry', 'behind', 'blocked') LIMIT {:limit}
    ) AS c) AS failed,
    (SELECT COUNT(*) FROM (
        SELECT 1 AS one FROM {dead} AS d WHERE d.target = {:target} LIMIT {:limit}
    ) AS c) AS dead,
    (SELECT COUNT(*) FROM (
        SELECT 1 AS one FROM {published} AS p WHERE p.target = {:target} LIMIT {:limit}
    ) AS c) AS published
