-- Version 1 of the inbox. What was seen is inserted and deleted, never updated. Times are in UTC.

CREATE TABLE IF NOT EXISTS {meta} (
    name VARCHAR(190) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL PRIMARY KEY,
    value VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL
) ENGINE = InnoDB;

-- Which events a consumer has handled.
CREATE TABLE IF NOT EXISTS {inbox_seen} (
    consumer VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL
        CHECK (octet_length(consumer) BETWEEN 1 AND 255),
    event_id BINARY(16) NOT NULL,
    -- Which call has written the row: there is no RETURNING that every server has.
    receipt BIGINT NOT NULL,
    seen_at DATETIME(6) NOT NULL,
    PRIMARY KEY (consumer, event_id),
    KEY by_time (consumer, seen_at)
) ENGINE = InnoDB;

-- How far a consumer is in each key.
CREATE TABLE IF NOT EXISTS {inbox_order} (
    consumer VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL
        CHECK (octet_length(consumer) BETWEEN 1 AND 255),
    source VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL CHECK (octet_length(source) <= 255),
    `key` VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL
        CHECK (octet_length(`key`) BETWEEN 1 AND 255),
    event_id BINARY(16) NOT NULL,
    position BIGINT NOT NULL,
    epoch BIGINT,
    -- What stood there before the last arrival: it is judged by that.
    last_event_id BINARY(16),
    last_position BIGINT,
    last_epoch BIGINT,
    moved_at DATETIME(6) NOT NULL,
    PRIMARY KEY (consumer, source, `key`),
    KEY by_time (consumer, moved_at)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
