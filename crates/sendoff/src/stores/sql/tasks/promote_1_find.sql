-- Earliest first, so that no entry waits for ever behind others.
SELECT e.task FROM {task_entry} AS e {force_by_due}
WHERE e.waiting = 1 AND e.due_at <= {now}
ORDER BY e.due_at
LIMIT {:limit} {:lock}
