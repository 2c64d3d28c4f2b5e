INSERT INTO {worker} (worker, target, name, has_session, started_at, lease_until)
VALUES ({:worker}, {:target}, {:name}, {:has_session}, {now}, {:until})
