UPDATE {worker} SET lease_until = {:until} WHERE worker = {:worker}
