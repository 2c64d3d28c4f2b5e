-- Nothing that is constant here stands in the order: MariaDB would sort, and lock, every entry of the kind.
SELECT e.task, e.kind, e.turn, e.due_at FROM {task_entry} AS e {force_by_turn}
WHERE e.waiting = 0 AND e.kind = {:kind}
ORDER BY e.turn, e.due_at, e.task
LIMIT {:limit} {:lock}
