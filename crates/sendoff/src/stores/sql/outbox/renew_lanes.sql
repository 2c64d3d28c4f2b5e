UPDATE {lane} SET lease_until = {:until} WHERE target = {:target} AND owner = {:worker} AND lane IN ({:lanes})
