SELECT unnest(b.ids) FROM {bundle} AS b WHERE b.lease_until > statement_timestamp()
