-- Version 1 of the inbox. What was seen is inserted and deleted, never updated. Times are microseconds since 1970, in UTC.

CREATE TABLE IF NOT EXISTS {meta} (
    name TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
);

-- Which events a consumer has handled.
CREATE TABLE IF NOT EXISTS {inbox_seen} (
    consumer TEXT NOT NULL CHECK (typeof(consumer) = 'text' AND length(CAST(consumer AS BLOB)) BETWEEN 1 AND 255),
    -- UUID as text, in lower case: it is compared as text.
    event_id TEXT NOT NULL CHECK (
        typeof(event_id) = 'text' AND event_id GLOB '????????-????-????-????-????????????'
        AND event_id NOT GLOB '*[^0-9a-f-]*'
    ),
    seen_at INTEGER NOT NULL CHECK (typeof(seen_at) = 'integer'),
    PRIMARY KEY (consumer, event_id)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS {inbox_seen_by_time} ON {inbox_seen} (consumer, seen_at);

-- How far a consumer is in each key.
CREATE TABLE IF NOT EXISTS {inbox_order} (
    consumer TEXT NOT NULL CHECK (typeof(consumer) = 'text' AND length(CAST(consumer AS BLOB)) BETWEEN 1 AND 255),
    source TEXT NOT NULL CHECK (typeof(source) = 'text' AND length(CAST(source AS BLOB)) <= 255),
    key TEXT NOT NULL CHECK (typeof(key) = 'text' AND length(CAST(key AS BLOB)) BETWEEN 1 AND 255),
    event_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    epoch INTEGER,
    -- What stood there before the last arrival: it is judged by that.
    last_event_id TEXT,
    last_position INTEGER,
    last_epoch INTEGER,
    moved_at INTEGER NOT NULL,
    PRIMARY KEY (consumer, source, key)
) WITHOUT ROWID;

CREATE INDEX IF NOT EXISTS {inbox_order_by_time} ON {inbox_order} (consumer, moved_at);
