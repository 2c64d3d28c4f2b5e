-- First claims of many rows, each of them one row here.
CREATE TABLE IF NOT EXISTS {bundle} (
    token uuid NOT NULL PRIMARY KEY,
    owner text NOT NULL,
    lease_until timestamptz NOT NULL,
    ids {id_type}[] NOT NULL
);
