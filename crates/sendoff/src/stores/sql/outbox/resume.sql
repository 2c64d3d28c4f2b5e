DELETE FROM {meta} WHERE name = {:name}
