CREATE TABLE {schema}.bare (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    target text NOT NULL,
    lane smallint NOT NULL DEFAULT 0,
    topic text NOT NULL,
    key text,
    payload bytea NOT NULL,
    content_type text,
    headers jsonb,
    event_id uuid NOT NULL,
    deliver_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now()
)
