-- Version 1 of the outbox. Events are inserted and deleted, never updated. Times are in UTC.

CREATE TABLE IF NOT EXISTS {meta} (
    name VARCHAR(190) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL PRIMARY KEY,
    value VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS {event} (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    target VARCHAR(63) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL DEFAULT 'default'
        CHECK (octet_length(target) BETWEEN 1 AND 63),
    topic VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL
        CHECK (octet_length(topic) BETWEEN 1 AND 255),
    `key` VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation} CHECK (octet_length(`key`) BETWEEN 1 AND 255),
    payload LONGBLOB NOT NULL,
    content_type VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation},
    headers JSON CHECK (headers IS NULL OR JSON_TYPE(headers) = 'OBJECT'),
    -- UUIDv7: the time in front, so that new ones go to the end of the index.
    event_id BINARY(16) NOT NULL DEFAULT (UNHEX(CONCAT(
        LPAD(HEX(CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS UNSIGNED)), 12, '0'),
        '7', SUBSTR(MD5(UUID()), 1, 3), '8', SUBSTR(MD5(UUID()), 1, 15)
    ))),
    deliver_at DATETIME(6),
    created_at DATETIME(6) NOT NULL DEFAULT (UTC_TIMESTAMP(6)),
    -- Computed here, so that no two programs can disagree on it. An AUTO_INCREMENT cannot be part of it: without a key it is the event id's
    -- last byte.
    lane SMALLINT AS (CASE WHEN `key` IS NULL THEN ORD(RIGHT(event_id, 1)) & 63 ELSE CRC32(`key`) & 63 END) STORED,
    KEY by_lane (target, lane, id),
    UNIQUE KEY by_event_id (event_id)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS {lane} (
    target VARCHAR(63) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    lane SMALLINT NOT NULL,
    owner BINARY(16),
    epoch BIGINT NOT NULL DEFAULT 0,
    lease_until DATETIME(6),
    floor BIGINT NOT NULL DEFAULT 0,
    crashes INT NOT NULL DEFAULT 0,
    named BIGINT,
    PRIMARY KEY (target, lane)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS {worker} (
    worker BINARY(16) NOT NULL PRIMARY KEY,
    target VARCHAR(63) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    has_session BOOLEAN NOT NULL,
    started_at DATETIME(6) NOT NULL,
    lease_until DATETIME(6) NOT NULL
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS {parked} (
    target VARCHAR(63) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    lane SMALLINT NOT NULL,
    id BIGINT NOT NULL,
    topic VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    `key` VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation},
    payload LONGBLOB NOT NULL,
    content_type VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation},
    headers JSON,
    event_id BINARY(16) NOT NULL,
    created_at DATETIME(6) NOT NULL,
    reason VARCHAR(16) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL
        CHECK (reason IN ('delayed', 'retry', 'behind', 'blocked', 'diverted')),
    -- Null: it waits for what is before it, or for an operator.
    due_at DATETIME(6),
    failures INT NOT NULL,
    crashes INT NOT NULL,
    cause VARCHAR(16) CHARACTER SET utf8mb4 COLLATE {collation},
    error TEXT CHARACTER SET utf8mb4 COLLATE {collation},
    parked_at DATETIME(6) NOT NULL,
    PRIMARY KEY (target, lane, id),
    KEY by_due (target, lane, due_at),
    KEY by_key (target, lane, `key`, id),
    KEY by_reason (target, reason, id),
    -- Not unique: a host may use an id again once its event has left the event table.
    KEY by_event_id (event_id)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS {dead} (
    target VARCHAR(63) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    lane SMALLINT NOT NULL,
    id BIGINT NOT NULL,
    topic VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    `key` VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation},
    payload LONGBLOB NOT NULL,
    content_type VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation},
    headers JSON,
    event_id BINARY(16) NOT NULL,
    created_at DATETIME(6) NOT NULL,
    failures INT NOT NULL,
    crashes INT NOT NULL,
    cause VARCHAR(16) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    error TEXT CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    died_at DATETIME(6) NOT NULL,
    PRIMARY KEY (target, id),
    KEY by_key (target, lane, `key`, id),
    KEY by_time (target, died_at),
    KEY by_event_id (event_id)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS {published} (
    target VARCHAR(63) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    lane SMALLINT NOT NULL,
    id BIGINT NOT NULL,
    topic VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    `key` VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation},
    payload LONGBLOB NOT NULL,
    content_type VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation},
    headers JSON,
    event_id BINARY(16) NOT NULL,
    created_at DATETIME(6) NOT NULL,
    published_at DATETIME(6) NOT NULL,
    PRIMARY KEY (target, id),
    KEY by_time (target, published_at),
    KEY by_event_id (event_id)
) ENGINE = InnoDB;

-- What operators did.
CREATE TABLE IF NOT EXISTS {operation} (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    at DATETIME(6) NOT NULL,
    operator VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    what VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    events BIGINT NOT NULL
) ENGINE = InnoDB;
