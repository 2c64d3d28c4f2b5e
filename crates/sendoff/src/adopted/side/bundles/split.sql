-- Rows of a bundle get claims of their own, under the same proof and until the same time.
WITH {leave}
INSERT INTO {side} (id, owner, token, lease_until, attempts)
SELECT parted.id, bundle.owner, bundle.token, bundle.lease_until, 1
FROM bundle CROSS JOIN parted
WHERE NOT parted.stays
ON CONFLICT DO NOTHING
