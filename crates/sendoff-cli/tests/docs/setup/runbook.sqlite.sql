-- A table that takes nothing: what a relay sends there is rejected.
CREATE TABLE inbox (
    event_id text, target text, topic text, "key" text, payload blob, content_type text, headers text, position integer, epoch integer,
    created_at text, UNIQUE (event_id), CHECK (false)
);
