-- One consumer; nothing is counted further than the limit.
SELECT
    (SELECT COUNT(*) FROM (
        SELECT 1 AS one FROM {inbox_seen} AS s WHERE s.consumer = {:consumer} LIMIT {:limit}
    ) AS c) AS seen,
    (SELECT COUNT(*) FROM (
        SELECT 1 AS one FROM {inbox_order} AS o WHERE o.consumer = {:consumer} LIMIT {:limit}
    ) AS c) AS keys_followed,
    (SELECT MIN(s.seen_at) FROM {inbox_seen} AS s WHERE s.consumer = {:consumer}) AS oldest,
    (SELECT MAX(s.seen_at) FROM {inbox_seen} AS s WHERE s.consumer = {:consumer}) AS newest,
    {now} AS now
