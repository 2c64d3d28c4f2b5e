-- How many that are, no further than the limit.
SELECT LEAST(COALESCE(SUM(cardinality(b.ids)), 0), {:limit})::bigint
FROM {bundle} AS b
WHERE (b.lease_until > statement_timestamp()) = {:lasts}
