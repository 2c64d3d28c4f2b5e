SELECT
    t.id, t.kind, t.payload, t.status, t.priority, t.unique_key, t.run_at, t.attempt, t.attempts_max, t.run_time,
    t.owner, t.lease_until, t.created_at, t.started_at, t.finished_at, t.error, t.progress, {now} AS now
FROM {task} AS t
WHERE t.id = {:task}
