-- Rows whose lease has ended get claims of their own, which have ended too: what was lost with its worker is counted for each row.
WITH lost AS MATERIALIZED (
    SELECT b.token FROM {bundle} AS b WHERE b.lease_until <= statement_timestamp() LIMIT 100 FOR UPDATE OF b SKIP LOCKED
), ended AS (
    DELETE FROM {bundle} AS b USING lost WHERE b.token = lost.token
    RETURNING b.ids, b.owner, b.token, b.lease_until
)
INSERT INTO {side} (id, owner, token, lease_until, attempts)
SELECT one.id, ended.owner, ended.token, ended.lease_until, 1
FROM ended CROSS JOIN LATERAL unnest(ended.ids) AS one (id)
ON CONFLICT DO NOTHING
