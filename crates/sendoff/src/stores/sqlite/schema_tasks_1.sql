-- Version 1 of tasks. A task that may be claimed has an entry; who claims it deletes that. Times are microseconds since 1970, in UTC.

CREATE TABLE IF NOT EXISTS {meta} (
    name TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
);

CREATE TABLE IF NOT EXISTS {task} (
    -- UUIDv7 as text.
    id TEXT PRIMARY KEY NOT NULL CHECK (typeof(id) = 'text' AND length(id) = 36),
    kind TEXT NOT NULL CHECK (typeof(kind) = 'text' AND length(CAST(kind AS BLOB)) BETWEEN 1 AND 100),
    payload BLOB NOT NULL CHECK (typeof(payload) IN ('blob', 'text')),
    status TEXT NOT NULL
        CHECK (status IN ('not_started', 'ready', 'running', 'completed', 'failed', 'cancelled')),
    priority INTEGER NOT NULL CHECK (priority BETWEEN -32768 AND 32767),
    unique_key TEXT CHECK (
        unique_key IS NULL
        OR (typeof(unique_key) = 'text' AND length(CAST(unique_key AS BLOB)) BETWEEN 1 AND 255)
    ),
    run_at INTEGER NOT NULL CHECK (typeof(run_at) = 'integer'),
    -- Raised by every claim: with the owner it is what a settlement is checked against.
    attempt INTEGER NOT NULL DEFAULT 0,
    attempts_max INTEGER NOT NULL CHECK (attempts_max > 0),
    -- Microseconds that one attempt may take.
    run_time INTEGER,
    owner TEXT,
    lease_until INTEGER,
    created_at INTEGER NOT NULL CHECK (typeof(created_at) = 'integer'),
    started_at INTEGER,
    finished_at INTEGER,
    error TEXT,
    progress TEXT
);

CREATE INDEX IF NOT EXISTS {task_by_status} ON {task} (status, kind, id);
CREATE UNIQUE INDEX IF NOT EXISTS {task_by_unique_key} ON {task} (unique_key)
    WHERE unique_key IS NOT NULL AND status IN ('not_started', 'ready', 'running');

CREATE TABLE IF NOT EXISTS {task_entry} (
    task TEXT PRIMARY KEY NOT NULL,
    kind TEXT NOT NULL,
    -- 1: not due when it was written, and not yet found to be. Claims do not see it.
    waiting INTEGER NOT NULL CHECK (waiting IN (0, 1)),
    -- The priority, negated: lowest first.
    turn INTEGER NOT NULL,
    due_at INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS {task_entry_by_turn} ON {task_entry} (waiting, kind, turn, due_at, task);
CREATE INDEX IF NOT EXISTS {task_entry_by_due} ON {task_entry} (waiting, due_at);

-- What happened, from the beginning.
CREATE TABLE IF NOT EXISTS {task_event} (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    task TEXT NOT NULL,
    event TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    owner TEXT,
    at INTEGER NOT NULL,
    detail TEXT
);

CREATE INDEX IF NOT EXISTS {task_event_by_task} ON {task_event} (task, id);

CREATE TABLE IF NOT EXISTS {task_worker} (
    worker TEXT PRIMARY KEY NOT NULL,
    name TEXT NOT NULL,
    -- One in each line.
    kinds TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL
);

-- Kinds of which only so many run at a time.
CREATE TABLE IF NOT EXISTS {task_limit} (
    kind TEXT PRIMARY KEY NOT NULL,
    most INTEGER NOT NULL CHECK (most >= 0)
);
