-- What stood before the move of this transaction, which has the row locked: as it is now, not as it was when the transaction began.
SELECT COALESCE(
    CONCAT(o.last_position, ' ', COALESCE(o.last_epoch, '-'), ' ', LOWER(HEX(o.last_event_id))), ''
) AS answer
FROM {inbox_order} AS o
WHERE o.consumer = {:consumer} AND o.source = {:source} AND o.{key} = {:key}
FOR UPDATE
