-- Claims of the rows of {host}, beside it. Its id is of the type and collation that the host's is.
CREATE TABLE IF NOT EXISTS {side} (
    PRIMARY KEY (id),
    place BIGINT NOT NULL AUTO_INCREMENT UNIQUE,
    state SMALLINT NOT NULL DEFAULT 0,
    ordering_key VARCHAR(255) CHARACTER SET utf8mb4 COLLATE {collation},
    owner VARCHAR(255),
    token CHAR(36),
    lease_until DATETIME(6),
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    KEY by_place (state, place),
    KEY by_key (ordering_key, place)
) ENGINE = InnoDB AS SELECT h.{id} AS id FROM {host} AS h WHERE 1 = 0;
