-- The worker, if it is alive, and the kinds that are limited.
SELECT w.name AS word, -1 AS most FROM {task_worker} AS w WHERE w.worker = {:worker} AND w.lease_until > {now}
UNION ALL
SELECT l.kind AS word, l.most AS most FROM {task_limit} AS l
