SELECT m.name FROM {meta} AS m WHERE m.name LIKE 'paused:%'
