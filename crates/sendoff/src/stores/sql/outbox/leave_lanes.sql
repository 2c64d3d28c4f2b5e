UPDATE {lane} SET owner = NULL, lease_until = NULL, named = NULL WHERE target = {:target} AND owner = {:worker}
