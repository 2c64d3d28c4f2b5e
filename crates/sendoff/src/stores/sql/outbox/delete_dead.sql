{delete_from_dead}
WHERE d.target = {:target} AND d.id IN ({:ids})
