-- The first of a key that only waited for its turn is due.
UPDATE {parked}
SET due_at = {now}
WHERE target = {:target} AND lane = {:lane} AND reason = 'behind' AND due_at IS NULL AND id = (
    SELECT first.id
    FROM (
        SELECT MIN(q.id) AS id
        FROM {parked} AS q
        WHERE q.target = {:target} AND q.lane = {:lane} AND q.{key} = {:key} AND q.reason <> 'delayed'
    ) AS first
)
