-- Whoever claims tasks of this kind waits here for the others, and then sees what they took.
SELECT l.most FROM {task_limit} AS l WHERE l.kind = {:kind} {:lock}
