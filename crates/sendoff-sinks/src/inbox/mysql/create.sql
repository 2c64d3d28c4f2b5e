CREATE TABLE IF NOT EXISTS {table} (
    -- The order of arrival. Of one key it is the order in which the host wrote.
    id bigint NOT NULL AUTO_INCREMENT PRIMARY KEY,
    event_id char(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL UNIQUE,
    target varchar(255) COLLATE utf8mb4_bin NOT NULL,
    topic varchar(255) COLLATE utf8mb4_bin NOT NULL,
    `key` varchar(512) COLLATE utf8mb4_bin,
    payload longblob NOT NULL,
    content_type varchar(255),
    headers longtext NOT NULL,
    position bigint NOT NULL,
    epoch bigint NOT NULL,
    created_at datetime(6) NOT NULL,
    received_at datetime(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
    -- The consumer's own.
    processed_at datetime(6)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4
