asked (id) AS MATERIALIZED (
    {ids}
), bundle AS MATERIALIZED (
    SELECT b.* FROM {bundle} AS b WHERE b.token = {:token} AND b.owner = {:owner} FOR UPDATE OF b
), parted AS MATERIALIZED (
    SELECT one.id, one.id NOT IN (SELECT asked.id FROM asked) AS stays
    FROM bundle CROSS JOIN LATERAL unnest(bundle.ids) AS one (id)
), staying AS MATERIALIZED (
    SELECT array_agg(parted.id) AS ids FROM parted WHERE parted.stays
), emptied AS (
    DELETE FROM {bundle} AS b USING bundle, staying WHERE b.token = bundle.token AND staying.ids IS NULL
), shrunk AS (
    UPDATE {bundle} AS b SET ids = staying.ids FROM bundle, staying
    WHERE b.token = bundle.token AND staying.ids IS NOT NULL
)
