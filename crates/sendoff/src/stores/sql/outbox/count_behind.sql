SELECT {:head} AS head, COUNT(*) AS behind
FROM (
    SELECT 1 AS one
    FROM {parked} AS p {force_by_key}
    WHERE p.target = {:target} AND p.lane = {:lane} AND p.{key} = {:key} AND p.id > {:head}
        AND p.reason <> 'delayed' AND p.reason IN ('retry', 'behind', 'blocked')
    LIMIT {:limit}
) AS c
