UPDATE {lane} SET named = {:id}
WHERE target = {:target} AND lane = {:lane} AND owner = {:worker} AND epoch = {:epoch}
