-- Version 1 of the outbox. Events are inserted and deleted, never updated. Times are microseconds since 1970, in UTC.

CREATE TABLE IF NOT EXISTS {meta} (
    name TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS {event} (
    -- AUTOINCREMENT: no id is ever given out again.
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    -- Types are checked: this database takes any value in any column, and a row that no worker can read would stop its lane.
    target TEXT NOT NULL DEFAULT 'default'
        CHECK (typeof(target) = 'text' AND length(CAST(target AS BLOB)) BETWEEN 1 AND 63),
    -- Computed here, so that no two programs can disagree on it. There is no hash function: the end of a key tells keys apart best.
    lane INTEGER GENERATED ALWAYS AS (
        CASE WHEN key IS NULL THEN id % 64 ELSE (
            length(key) * 7
            + coalesce(unicode(substr(key, -1, 1)), 0)
            + coalesce(unicode(substr(key, -2, 1)), 0) * 5
            + coalesce(unicode(substr(key, -3, 1)), 0) * 11
            + coalesce(unicode(substr(key, -4, 1)), 0) * 23
        ) % 64 END
    ) VIRTUAL,
    topic TEXT NOT NULL CHECK (typeof(topic) = 'text' AND length(CAST(topic AS BLOB)) BETWEEN 1 AND 255),
    key TEXT CHECK (key IS NULL OR (typeof(key) = 'text' AND length(CAST(key AS BLOB)) BETWEEN 1 AND 255)),
    payload BLOB NOT NULL CHECK (typeof(payload) IN ('blob', 'text')),
    content_type TEXT CHECK (typeof(content_type) IN ('text', 'null')),
    headers TEXT CHECK (headers IS NULL OR (typeof(headers) = 'text' AND json_type(headers) = 'object')),
    -- UUIDv7 as text.
    event_id TEXT NOT NULL DEFAULT (
        substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 1, 8) || '-'
        || substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 9, 4) || '-7'
        || substr(lower(hex(randomblob(2))), 2) || '-8' || substr(lower(hex(randomblob(2))), 2) || '-'
        || lower(hex(randomblob(6)))
    ) CHECK (
        typeof(event_id) = 'text' AND event_id GLOB '????????-????-????-????-????????????'
        AND event_id NOT GLOB '*[^0-9a-f-]*'
    ),
    deliver_at INTEGER CHECK (typeof(deliver_at) IN ('integer', 'null')),
    created_at INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) * 1000)
        CHECK (typeof(created_at) = 'integer')
);

CREATE INDEX IF NOT EXISTS {event_by_lane} ON {event} (target, lane, id);
CREATE UNIQUE INDEX IF NOT EXISTS {event_by_event_id} ON {event} (event_id);

CREATE TABLE IF NOT EXISTS {lane} (
    target TEXT NOT NULL,
    lane INTEGER NOT NULL,
    owner TEXT,
    epoch INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER,
    floor INTEGER NOT NULL DEFAULT 0,
    crashes INTEGER NOT NULL DEFAULT 0,
    named INTEGER,
    PRIMARY KEY (target, lane)
);

CREATE TABLE IF NOT EXISTS {worker} (
    worker TEXT PRIMARY KEY NOT NULL,
    target TEXT NOT NULL,
    name TEXT NOT NULL,
    has_session INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS {parked} (
    target TEXT NOT NULL,
    lane INTEGER NOT NULL,
    id INTEGER NOT NULL,
    topic TEXT NOT NULL,
    key TEXT,
    payload BLOB NOT NULL,
    content_type TEXT,
    headers TEXT,
    event_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    reason TEXT NOT NULL CHECK (reason IN ('delayed', 'retry', 'behind', 'blocked', 'diverted')),
    -- Null: it waits for what is before it, or for an operator.
    due_at INTEGER,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    cause TEXT,
    error TEXT,
    parked_at INTEGER NOT NULL,
    PRIMARY KEY (target, lane, id)
);

CREATE INDEX IF NOT EXISTS {parked_by_reason} ON {parked} (target, reason, id);
-- Not unique: a host may use an id again once its event has left the event table.
CREATE INDEX IF NOT EXISTS {parked_by_event_id} ON {parked} (event_id);

CREATE TABLE IF NOT EXISTS {dead} (
    target TEXT NOT NULL,
    lane INTEGER NOT NULL,
    id INTEGER NOT NULL,
    topic TEXT NOT NULL,
    key TEXT,
    payload BLOB NOT NULL,
    content_type TEXT,
    headers TEXT,
    event_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    crashes INTEGER NOT NULL,
    cause TEXT NOT NULL,
    error TEXT NOT NULL,
    died_at INTEGER NOT NULL,
    PRIMARY KEY (target, id)
);

CREATE INDEX IF NOT EXISTS {dead_by_key} ON {dead} (target, lane, key, id);
CREATE INDEX IF NOT EXISTS {dead_by_time} ON {dead} (target, died_at);
CREATE INDEX IF NOT EXISTS {dead_by_event_id} ON {dead} (event_id);

CREATE TABLE IF NOT EXISTS {published} (
    target TEXT NOT NULL,
    lane INTEGER NOT NULL,
    id INTEGER NOT NULL,
    topic TEXT NOT NULL,
    key TEXT,
    payload BLOB NOT NULL,
    content_type TEXT,
    headers TEXT,
    event_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    published_at INTEGER NOT NULL,
    PRIMARY KEY (target, id)
);

CREATE INDEX IF NOT EXISTS {published_by_time} ON {published} (target, published_at);
CREATE INDEX IF NOT EXISTS {published_by_event_id} ON {published} (event_id);

-- What operators did.
CREATE TABLE IF NOT EXISTS {operation} (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    operator TEXT NOT NULL,
    what TEXT NOT NULL,
    events INTEGER NOT NULL
);
