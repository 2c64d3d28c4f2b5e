INSERT INTO {task_worker} (worker, name, kinds, started_at, lease_until)
VALUES ({:worker}, {:name}, {:kinds}, {now}, {:lease_until})
