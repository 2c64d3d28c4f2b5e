SELECT pg_total_relation_size({:seen}::text::regclass) + pg_total_relation_size({:order}::text::regclass) AS bytes
