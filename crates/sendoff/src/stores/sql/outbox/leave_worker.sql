DELETE FROM {worker} WHERE worker = {:worker}
