-- Of these, what only waited for its turn is due.
UPDATE {parked}
SET due_at = {now}
WHERE target = {:target} AND lane = {:lane} AND id IN ({:ids}) AND reason = 'behind' AND due_at IS NULL
