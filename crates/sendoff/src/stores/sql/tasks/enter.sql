-- One that is there already is left: it does the same.
{insert_if_new} {task_entry} (task, kind, waiting, turn, due_at)
SELECT t.id, t.kind, CASE WHEN t.run_at > {now} THEN 1 ELSE 0 END, 0 - t.priority, t.run_at
FROM {task} AS t
WHERE t.id IN ({:tasks})
{or_leave}
