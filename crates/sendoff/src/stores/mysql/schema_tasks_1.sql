-- Version 1 of tasks. A task that may be claimed has an entry; who claims it deletes that. Times are in UTC.

CREATE TABLE IF NOT EXISTS {meta} (
    name VARCHAR(190) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL PRIMARY KEY,
    value VARCHAR(1000) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS {task} (
    id BINARY(16) NOT NULL PRIMARY KEY,
    kind VARCHAR(100) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL
        CHECK (octet_length(kind) BETWEEN 1 AND 100),
    payload LONGBLOB NOT NULL,
    status VARCHAR(16) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL
        CHECK (status IN ('not_started', 'ready', 'running', 'completed', 'failed', 'cancelled')),
    priority SMALLINT NOT NULL,
    unique_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation}
        CHECK (octet_length(unique_key) BETWEEN 1 AND 255),
    -- There are no partial indexes here: what is not live has no such key.
    live_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation}
        AS (CASE WHEN status IN ('not_started', 'ready', 'running') THEN unique_key END) STORED,
    run_at DATETIME(6) NOT NULL,
    -- Raised by every claim: with the owner it is what a settlement is checked against.
    attempt INT NOT NULL DEFAULT 0,
    attempts_max INT NOT NULL CHECK (attempts_max > 0),
    -- Microseconds that one attempt may take.
    run_time BIGINT,
    owner BINARY(16),
    lease_until DATETIME(6),
    created_at DATETIME(6) NOT NULL,
    started_at DATETIME(6),
    finished_at DATETIME(6),
    error TEXT CHARACTER SET utf8mb4 COLLATE {collation},
    progress TEXT CHARACTER SET utf8mb4 COLLATE {collation},
    KEY by_status (status, kind, id),
    UNIQUE KEY by_live_key (live_key)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS {task_entry} (
    task BINARY(16) NOT NULL PRIMARY KEY,
    kind VARCHAR(100) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    -- 1: not due when it was written, and not yet found to be. Claims do not see it.
    waiting SMALLINT NOT NULL,
    -- The priority, negated: lowest first.
    turn INT NOT NULL,
    due_at DATETIME(6) NOT NULL,
    KEY by_turn (waiting, kind, turn, due_at, task),
    KEY by_due (waiting, due_at)
) ENGINE = InnoDB;

-- What happened, from the beginning.
CREATE TABLE IF NOT EXISTS {task_event} (
    id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
    task BINARY(16) NOT NULL,
    event VARCHAR(32) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    attempt INT NOT NULL,
    owner BINARY(16),
    at DATETIME(6) NOT NULL,
    detail TEXT CHARACTER SET utf8mb4 COLLATE {collation},
    KEY by_task (task, id)
) ENGINE = InnoDB;

CREATE TABLE IF NOT EXISTS {task_worker} (
    worker BINARY(16) NOT NULL PRIMARY KEY,
    name VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    -- One in each line.
    kinds MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL,
    started_at DATETIME(6) NOT NULL,
    lease_until DATETIME(6) NOT NULL
) ENGINE = InnoDB;

-- Kinds of which only so many run at a time.
CREATE TABLE IF NOT EXISTS {task_limit} (
    kind VARCHAR(100) CHARACTER SET utf8mb4 COLLATE {collation} NOT NULL PRIMARY KEY,
    most INT NOT NULL CHECK (most >= 0)
) ENGINE = InnoDB;
