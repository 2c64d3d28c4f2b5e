SELECT {:kind}::text AS kind, {:limit}::bigint AS many
WHERE EXISTS (SELECT 1 FROM {task_worker} AS a WHERE a.worker = {:worker} AND a.lease_until > {now})
    AND NOT EXISTS (SELECT 1 FROM {task_limit} AS l WHERE l.kind = {:kind})
