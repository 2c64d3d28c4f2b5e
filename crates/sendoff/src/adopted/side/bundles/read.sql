-- The host's rows of a bundle that are still to be delivered, in their order.
SELECT {columns}
FROM {bundle} AS b
CROSS JOIN LATERAL unnest(b.ids) WITH ORDINALITY AS one (id, place)
JOIN {host} AS h ON h.{id} = one.id
WHERE b.token = {token} AND b.owner = {owner} AND {wanted}
ORDER BY one.place
