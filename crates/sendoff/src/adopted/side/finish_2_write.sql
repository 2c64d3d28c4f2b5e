-- What became of the host's rows.
UPDATE {host} SET {set} WHERE {id} {in_ids}
