-- Rows that are claimed in bundles, as the table of claims would have them.
SELECT one.id, b.owner, b.lease_until, 1::bigint AS attempts
FROM {bundle} AS b CROSS JOIN LATERAL unnest(b.ids) AS one (id)
WHERE (b.lease_until > statement_timestamp()) = {:lasts} AND {named}
LIMIT {:limit}
