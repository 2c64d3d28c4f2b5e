-- Claims of the rows of {host}, beside it. A claim changes neither key nor state, so that it writes no index.
CREATE TABLE IF NOT EXISTS {side} (
    id {id_type} NOT NULL PRIMARY KEY,
    place bigint GENERATED ALWAYS AS IDENTITY,
    -- 0: to be delivered; 1: delivered; 2: given up.
    state smallint NOT NULL DEFAULT 0,
    ordering_key text,
    owner text,
    token uuid,
    lease_until timestamptz,
    attempts integer NOT NULL DEFAULT 0,
    error text
) WITH (fillfactor = 70);
CREATE INDEX IF NOT EXISTS {by_place} ON {side} (state, place);
CREATE INDEX IF NOT EXISTS {by_key} ON {side} (ordering_key, place) WHERE ordering_key IS NOT NULL;
