-- How much that is, no further than the limit.
SELECT COUNT(*)
FROM (
    SELECT 1 AS one FROM {host} AS h
    WHERE {wanted}
      AND NOT EXISTS (SELECT 1 FROM {side} AS s WHERE s.id = h.{id}){and_in_no_bundle}
    LIMIT {:limit}
) AS waiting
