{delete_from_parked}
WHERE p.target = {:target} AND p.lane IN ({:lanes}) AND p.id IN ({:ids})
