-- Version 1 of tasks. A task that may be claimed has an entry; who claims it deletes that.

CREATE SCHEMA IF NOT EXISTS {schema};

CREATE TABLE IF NOT EXISTS {meta} (
    name text PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE IF NOT EXISTS {task} (
    id uuid PRIMARY KEY,
    kind text COLLATE "C" NOT NULL CHECK (octet_length(kind) BETWEEN 1 AND 100),
    payload bytea NOT NULL,
    status text COLLATE "C" NOT NULL
        CHECK (status IN ('not_started', 'ready', 'running', 'completed', 'failed', 'cancelled')),
    priority smallint NOT NULL,
    unique_key text COLLATE "C" CHECK (octet_length(unique_key) BETWEEN 1 AND 255),
    run_at timestamptz NOT NULL CHECK (run_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-01-01 00:00:00+00'),
    -- Raised by every claim: with the owner it is what a settlement is checked against.
    attempt integer NOT NULL DEFAULT 0,
    attempts_max integer NOT NULL CHECK (attempts_max > 0),
    -- Microseconds that one attempt may take.
    run_time bigint,
    owner uuid,
    lease_until timestamptz,
    created_at timestamptz NOT NULL,
    started_at timestamptz,
    finished_at timestamptz,
    error text,
    progress text
) WITH (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX IF NOT EXISTS {task_by_status} ON {task} (status, kind, id);
CREATE UNIQUE INDEX IF NOT EXISTS {task_by_unique_key} ON {task} (unique_key)
    WHERE unique_key IS NOT NULL AND status IN ('not_started', 'ready', 'running');

CREATE TABLE IF NOT EXISTS {task_entry} (
    task uuid PRIMARY KEY,
    kind text COLLATE "C" NOT NULL,
    -- 1: not due when it was written, and not yet found to be. Claims do not see it.
    waiting smallint NOT NULL,
    -- The priority, negated: lowest first.
    turn integer NOT NULL,
    due_at timestamptz NOT NULL
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 1000000,
    autovacuum_vacuum_cost_delay = 0
);

CREATE INDEX IF NOT EXISTS {task_entry_by_turn} ON {task_entry} (waiting, kind, turn, due_at, task);
CREATE INDEX IF NOT EXISTS {task_entry_by_due} ON {task_entry} (waiting, due_at);

-- What happened, from the beginning.
CREATE TABLE IF NOT EXISTS {task_event} (
    task uuid NOT NULL,
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY,
    event text COLLATE "C" NOT NULL,
    attempt integer NOT NULL,
    owner uuid,
    at timestamptz NOT NULL,
    detail text,
    PRIMARY KEY (task, id)
);

CREATE TABLE IF NOT EXISTS {task_worker} (
    worker uuid PRIMARY KEY,
    name text NOT NULL,
    -- One in each line.
    kinds text COLLATE "C" NOT NULL,
    started_at timestamptz NOT NULL,
    lease_until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Kinds of which only so many run at a time.
CREATE TABLE IF NOT EXISTS {task_limit} (
    kind text COLLATE "C" PRIMARY KEY,
    most integer NOT NULL CHECK (most >= 0)
);
