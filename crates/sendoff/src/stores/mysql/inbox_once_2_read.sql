-- What this very call has written: a transaction sees its own rows, whatever its isolation.
SELECT LOWER(HEX(s.event_id)) AS answer
FROM {inbox_seen} AS s FORCE INDEX (PRIMARY)
WHERE s.consumer = {:consumer} AND s.event_id IN ({:ids}) AND s.receipt = {:receipt}
