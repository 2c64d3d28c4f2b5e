DELETE v FROM ({:which}) AS k STRAIGHT_JOIN {task_event} AS v FORCE INDEX (by_task) ON v.task = k.task
