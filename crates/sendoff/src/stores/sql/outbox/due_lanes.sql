SELECT DISTINCT p.lane FROM {parked} AS p WHERE p.target = {:target} AND p.lane IN ({:lanes}) AND p.due_at <= {now}
