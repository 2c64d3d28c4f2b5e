{delete_from_published}
WHERE p.target = {:target} AND p.id IN ({:ids})
