CREATE TABLE {table} (
    id              CHAR(36) PRIMARY KEY,
    aggregate_type  VARCHAR(100) NOT NULL,
    aggregate_id    VARCHAR(100) NOT NULL,
    event_type      VARCHAR(100) NOT NULL,
    payload         JSON NOT NULL,
    created_at      DATETIME(6) NOT NULL,
    published_at    DATETIME(6),
    status          VARCHAR(20) NOT NULL DEFAULT 'PENDING',
    retry_count     INT NOT NULL DEFAULT 0
);
CREATE INDEX {table}_status_created ON {table} (status, created_at);
