CREATE TABLE IF NOT EXISTS {table} (
    -- The order of arrival. Of one key it is the order in which the host wrote.
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id uuid NOT NULL UNIQUE,
    target text NOT NULL,
    topic text NOT NULL,
    key text,
    payload bytea NOT NULL,
    content_type text,
    headers jsonb NOT NULL,
    position bigint NOT NULL,
    epoch bigint NOT NULL,
    created_at timestamptz NOT NULL,
    received_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The consumer's own.
    processed_at timestamptz
)
