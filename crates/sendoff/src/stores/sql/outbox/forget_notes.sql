DELETE FROM {meta} WHERE name IN ({:names})
