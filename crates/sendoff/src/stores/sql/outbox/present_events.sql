SELECT e.id FROM {event} AS e WHERE e.target = {:target} AND e.lane IN ({:lanes}) AND e.id IN ({:ids})
