UPDATE {parked}
SET reason = {:reason}, due_at = {:due}, failures = {:failures}, crashes = {:crashes},
    cause = COALESCE({:cause}, cause), error = COALESCE({:error}, error), parked_at = {now}
WHERE target = {:target} AND lane IN ({:lanes}) AND id IN ({:ids})
