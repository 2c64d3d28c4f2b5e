CREATE TABLE IF NOT EXISTS {table} (
    -- The order of arrival. Of one key it is the order in which the host wrote.
    id integer PRIMARY KEY AUTOINCREMENT,
    event_id text NOT NULL UNIQUE,
    target text NOT NULL,
    topic text NOT NULL,
    "key" text,
    payload blob NOT NULL,
    content_type text,
    headers text NOT NULL,
    position integer NOT NULL,
    epoch integer NOT NULL,
    created_at text NOT NULL,
    received_at text NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    -- The consumer's own.
    processed_at text
)
