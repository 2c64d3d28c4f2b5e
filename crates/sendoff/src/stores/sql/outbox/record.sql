INSERT INTO {operation} (at, operator, what, events) VALUES ({now}, {:by}, {:what}, {:events})
