-- Version 1 of the outbox. Events are inserted and deleted, never updated.

CREATE SCHEMA IF NOT EXISTS {schema};

CREATE TABLE IF NOT EXISTS {meta} (
    name text PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE IF NOT EXISTS {event} (
    target text COLLATE "C" NOT NULL DEFAULT 'default' CHECK (octet_length(target) BETWEEN 1 AND 63),
    -- Computed here, so that no two programs can disagree on it.
    lane smallint NOT NULL GENERATED ALWAYS AS (
        CASE WHEN key IS NULL THEN (id & 63)::smallint ELSE (hashtext(key) & 63)::smallint END
    ) STORED,
    -- CACHE 1: of two transactions that run one after the other the later one has the higher id.
    id bigint NOT NULL GENERATED ALWAYS AS IDENTITY (CACHE 1),
    topic text COLLATE "C" NOT NULL CHECK (octet_length(topic) BETWEEN 1 AND 255),
    key text COLLATE "C" CHECK (octet_length(key) BETWEEN 1 AND 255),
    payload bytea NOT NULL,
    content_type text,
    headers jsonb CHECK (jsonb_typeof(headers) = 'object'),
    -- UUIDv7: the time in front, so that new ones go to the end of the index.
    event_id uuid NOT NULL DEFAULT encode(
        set_bit(
            set_bit(
                overlay(
                    uuid_send(gen_random_uuid())
                    PLACING substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) FROM 3)
                    FROM 1 FOR 6
                ),
                52, 1
            ),
            53, 1
        ),
        'hex'
    )::uuid,
    -- No driver reads what lies beyond, 'infinity' among it, and a row that no worker can read would stop its lane.
    deliver_at timestamptz CHECK (deliver_at < '9999-01-01 00:00:00+00'),
    created_at timestamptz NOT NULL DEFAULT now()
        CHECK (created_at BETWEEN '0001-01-01 00:00:00+00' AND '9999-01-01 00:00:00+00'),
    PRIMARY KEY (target, lane, id)
) WITH (
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 10000,
    autovacuum_vacuum_insert_scale_factor = 0,
    autovacuum_vacuum_insert_threshold = 1000000,
    autovacuum_vacuum_cost_delay = 0
);

CREATE UNIQUE INDEX IF NOT EXISTS {event_by_event_id} ON {event} (event_id);

CREATE TABLE IF NOT EXISTS {lane} (
    target text COLLATE "C" NOT NULL,
    lane smallint NOT NULL,
    owner uuid,
    epoch bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    floor bigint NOT NULL DEFAULT 0,
    crashes integer NOT NULL DEFAULT 0,
    named bigint,
    PRIMARY KEY (target, lane)
) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE IF NOT EXISTS {worker} (
    worker uuid PRIMARY KEY,
    target text COLLATE "C" NOT NULL,
    name text NOT NULL,
    -- Holds a session lock named after it, so that others can tell at once when it is gone.
    has_session boolean NOT NULL,
    started_at timestamptz NOT NULL,
    lease_until timestamptz NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE IF NOT EXISTS {parked} (
    target text COLLATE "C" NOT NULL,
    lane smallint NOT NULL,
    id bigint NOT NULL,
    topic text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    payload bytea NOT NULL,
    content_type text,
    headers jsonb,
    event_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    reason text NOT NULL CHECK (reason IN ('delayed', 'retry', 'behind', 'blocked', 'diverted')),
    -- Null: it waits for what is before it, or for an operator.
    due_at timestamptz,
    failures integer NOT NULL,
    crashes integer NOT NULL,
    cause text,
    error text,
    parked_at timestamptz NOT NULL,
    PRIMARY KEY (target, lane, id)
);

CREATE INDEX IF NOT EXISTS {parked_by_reason} ON {parked} (target, reason, id);
-- Not unique: a host may use an id again once its event has left the event table.
CREATE INDEX IF NOT EXISTS {parked_by_event_id} ON {parked} (event_id);

CREATE TABLE IF NOT EXISTS {dead} (
    target text COLLATE "C" NOT NULL,
    lane smallint NOT NULL,
    id bigint NOT NULL,
    topic text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    payload bytea NOT NULL,
    content_type text,
    headers jsonb,
    event_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    failures integer NOT NULL,
    crashes integer NOT NULL,
    cause text NOT NULL,
    error text NOT NULL,
    died_at timestamptz NOT NULL,
    PRIMARY KEY (target, id)
);

CREATE INDEX IF NOT EXISTS {dead_by_key} ON {dead} (target, lane, key, id);
CREATE INDEX IF NOT EXISTS {dead_by_time} ON {dead} (target, died_at);
CREATE INDEX IF NOT EXISTS {dead_by_event_id} ON {dead} (event_id);

CREATE TABLE IF NOT EXISTS {published} (
    target text COLLATE "C" NOT NULL,
    lane smallint NOT NULL,
    id bigint NOT NULL,
    topic text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    payload bytea NOT NULL,
    content_type text,
    headers jsonb,
    event_id uuid NOT NULL,
    created_at timestamptz NOT NULL,
    published_at timestamptz NOT NULL,
    PRIMARY KEY (target, id)
);

CREATE INDEX IF NOT EXISTS {published_by_time} ON {published} (target, published_at);
CREATE INDEX IF NOT EXISTS {published_by_event_id} ON {published} (event_id);

-- What operators did.
CREATE TABLE IF NOT EXISTS {operation} (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at timestamptz NOT NULL,
    operator text NOT NULL,
    what text NOT NULL,
    events bigint NOT NULL
);
