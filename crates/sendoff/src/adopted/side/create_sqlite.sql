-- Claims of the rows of {host}, beside it.
CREATE TABLE IF NOT EXISTS {side} (
    place INTEGER PRIMARY KEY AUTOINCREMENT,
    id {id_type} NOT NULL UNIQUE,
    -- 0: to be delivered; 1: delivered; 2: given up.
    state INTEGER NOT NULL DEFAULT 0,
    ordering_key TEXT,
    owner TEXT,
    token TEXT,
    -- Microseconds since 1970.
    lease_until INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    error TEXT
);
CREATE INDEX IF NOT EXISTS {by_place} ON {side} (state, place);
CREATE INDEX IF NOT EXISTS {by_key} ON {side} (ordering_key, place);
