DELETE t FROM ({:which}) AS k STRAIGHT_JOIN {task} AS t ON t.id = k.task
WHERE t.status IN ('completed', 'failed', 'cancelled')
