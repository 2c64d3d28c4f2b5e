SELECT p.id FROM {parked} AS p WHERE p.target = {:target} AND p.lane IN ({:lanes}) AND p.id IN ({:ids})
