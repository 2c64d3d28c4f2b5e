CREATE TABLE {table} (
    message_id VARCHAR(190) NOT NULL,
    stream_name VARCHAR(190) NOT NULL,
    type VARCHAR(190) NOT NULL,
    data JSON NOT NULL,
    metadata_ LONGBLOB NOT NULL,
    created_at DATETIME(6),
    published_at DATETIME(6),
    retry_count INTEGER DEFAULT 0,
    last_processed_at DATETIME(6),
    last_error JSON,
    status VARCHAR(32) DEFAULT 'pending',
    max_retries INTEGER DEFAULT 3,
    next_retry_at DATETIME(6),
    locked_until DATETIME(6),
    locked_by VARCHAR(128),
    sequence_number INTEGER,
    correlation_id VARCHAR(190),
    causation_id VARCHAR(190),
    partition_key VARCHAR(190),
    priority INTEGER DEFAULT 0,
    target_broker VARCHAR(128) NOT NULL,
    id VARCHAR(190) NOT NULL PRIMARY KEY,
    _version INTEGER
);
CREATE INDEX {table}_active ON {table} (status, priority DESC);
CREATE UNIQUE INDEX {table}_message ON {table} (message_id, target_broker);
CREATE INDEX {table}_correlation ON {table} (correlation_id);
