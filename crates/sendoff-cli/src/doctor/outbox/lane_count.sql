-- What waits in one lane, counted no further than the limit.
SELECT COUNT(*) FROM (SELECT 1 AS one FROM {event} AS e WHERE e.target = {1} AND e.lane = {2} LIMIT 20000) AS c
