SELECT t.id FROM {task} AS t WHERE {live_key} = {:key} {:lock}
