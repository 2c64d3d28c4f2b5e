SELECT w.worker FROM {worker} AS w LIMIT {:limit}
