UPDATE {task} SET status = 'ready' WHERE id = {:task} AND status = 'not_started'
