-- The first of each lane and of each reason: positions rise with time, and no index is kept for more than that.
SELECT {now} AS now, MIN(u.created_at) AS oldest
FROM ({:lanes} UNION ALL {:reasons}) AS u
