DELETE FROM {host} WHERE {id} {in_ids}
