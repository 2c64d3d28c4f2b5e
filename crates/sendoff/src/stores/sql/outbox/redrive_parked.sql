UPDATE {parked}
SET reason = 'retry', due_at = {now}, failures = 0, crashes = 0
WHERE target = {:target} AND lane = {:lane} AND id IN ({:ids}) AND reason IN ('retry', 'blocked')
