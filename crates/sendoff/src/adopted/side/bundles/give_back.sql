-- Of a claim that nobody was told of.
DELETE FROM {bundle} AS b WHERE b.token = {:token} AND b.owner = {:owner}
