DELETE FROM {task} WHERE id IN ({:tasks}) AND status IN ('completed', 'failed', 'cancelled')
