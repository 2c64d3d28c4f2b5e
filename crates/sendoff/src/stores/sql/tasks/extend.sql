UPDATE {task} AS t {force_primary} SET lease_until = {:lease_until} WHERE t.id IN ({:tasks})
