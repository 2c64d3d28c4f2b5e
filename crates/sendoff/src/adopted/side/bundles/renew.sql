WITH renewed AS (
    UPDATE {bundle} AS b SET lease_until = statement_timestamp() + {:lease} * interval '1 microsecond'
    WHERE b.token = {:token} AND b.owner = {:owner}
    RETURNING b.ids
)
SELECT unnest(renewed.ids) FROM renewed
