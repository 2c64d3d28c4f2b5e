UPDATE {task} {force_primary} SET progress = {:progress}
WHERE id = {:task} AND status = 'running' AND attempt = {:attempt} AND owner = {:worker}
