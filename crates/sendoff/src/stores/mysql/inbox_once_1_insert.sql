-- What is there already stays as it is, and is locked until the end. Not INSERT IGNORE, which would cut what does not fit.
INSERT INTO {inbox_seen} (consumer, event_id, seen_at, receipt)
VALUES {:rows}
ON DUPLICATE KEY UPDATE receipt = receipt
