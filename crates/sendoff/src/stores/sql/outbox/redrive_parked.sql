-- One that is due stays due since then: to ask again and again must not put it off.
UPDATE {parked}
SET reason = 'retry', due_at = CASE WHEN due_at < {now} THEN due_at ELSE {now} END, failures = 0, crashes = 0
WHERE target = {:target} AND lane = {:lane} AND id IN ({:ids}) AND reason IN ('retry', 'blocked')
