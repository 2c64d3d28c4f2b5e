CREATE TABLE {table} (
    message_id VARCHAR(255) NOT NULL,
    stream_name VARCHAR(255) NOT NULL,
    type VARCHAR(255) NOT NULL,
    data JSON NOT NULL,
    metadata_ BYTEA NOT NULL,
    created_at TIMESTAMP WITHOUT TIME ZONE,
    published_at TIMESTAMP WITHOUT TIME ZONE,
    retry_count INTEGER DEFAULT 0,
    last_processed_at TIMESTAMP WITHOUT TIME ZONE,
    last_error JSON,
    status VARCHAR(32) DEFAULT 'pending',
    max_retries INTEGER DEFAULT 3,
    next_retry_at TIMESTAMP WITHOUT TIME ZONE,
    locked_until TIMESTAMP WITHOUT TIME ZONE,
    locked_by VARCHAR(128),
    sequence_number INTEGER,
    correlation_id VARCHAR(255),
    causation_id VARCHAR(255),
    partition_key VARCHAR(255),
    priority INTEGER DEFAULT 0,
    target_broker VARCHAR(128) NOT NULL,
    id VARCHAR(255) NOT NULL PRIMARY KEY,
    _version INTEGER
);
CREATE INDEX {table}_active ON {table} (status, priority DESC) WHERE status IN ('pending', 'failed');
CREATE UNIQUE INDEX {table}_message ON {table} (message_id, target_broker);
CREATE INDEX {table}_correlation ON {table} (correlation_id);
