UPDATE {lane} SET crashes = 0, named = NULL WHERE target = {:target} AND owner = {:worker} AND lane IN ({:lanes})
