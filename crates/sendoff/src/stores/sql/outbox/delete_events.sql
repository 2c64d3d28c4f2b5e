{delete_from_event}
WHERE e.target = {:target} AND e.lane IN ({:lanes}) AND e.id IN ({:ids})
