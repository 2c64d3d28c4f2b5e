-- One whose time has passed may have been taken for lost already: it is not revived.
UPDATE {task_worker} SET lease_until = {:lease_until} WHERE worker = {:worker} AND lease_until > {now}
