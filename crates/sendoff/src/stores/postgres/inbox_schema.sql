-- Version 1 of the inbox. What was seen is inserted and deleted, never updated.

CREATE SCHEMA IF NOT EXISTS {schema};

CREATE TABLE IF NOT EXISTS {meta} (
    name text PRIMARY KEY,
    value text NOT NULL
);

-- Which events a consumer has handled.
CREATE TABLE IF NOT EXISTS {inbox_seen} (
    consumer text COLLATE "C" NOT NULL CHECK (octet_length(consumer) BETWEEN 1 AND 255),
    event_id uuid NOT NULL,
    seen_at timestamptz NOT NULL,
    PRIMARY KEY (consumer, event_id)
);

CREATE INDEX IF NOT EXISTS {inbox_seen_by_time} ON {inbox_seen} (consumer, seen_at);

-- How far a consumer is in each key.
CREATE TABLE IF NOT EXISTS {inbox_order} (
    consumer text COLLATE "C" NOT NULL CHECK (octet_length(consumer) BETWEEN 1 AND 255),
    source text COLLATE "C" NOT NULL CHECK (octet_length(source) <= 255),
    key text COLLATE "C" NOT NULL CHECK (octet_length(key) BETWEEN 1 AND 255),
    event_id uuid NOT NULL,
    position bigint NOT NULL,
    epoch bigint,
    -- What stood there before the last arrival: it is judged by that.
    last_event_id uuid,
    last_position bigint,
    last_epoch bigint,
    moved_at timestamptz NOT NULL,
    PRIMARY KEY (consumer, source, key)
);

CREATE INDEX IF NOT EXISTS {inbox_order_by_time} ON {inbox_order} (consumer, moved_at);
