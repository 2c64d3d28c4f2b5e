-- The key moves on, but not for an arrival of an older epoch; what stood before is kept beside it and returned, to judge by. Null: nothing did.
INSERT INTO {inbox_order} AS o (consumer, source, {key}, event_id, position, epoch, moved_at)
VALUES ({:consumer}, {:source}, {:key}, {:event_id}, {:position}, {:epoch}, {now})
ON CONFLICT (consumer, source, {key}) DO UPDATE SET
    last_event_id = o.event_id,
    last_position = o.position,
    last_epoch = o.epoch,
    event_id = CASE WHEN excluded.position > o.position AND coalesce(excluded.epoch >= o.epoch, true)
        THEN excluded.event_id ELSE o.event_id END,
    position = CASE WHEN excluded.position > o.position AND coalesce(excluded.epoch >= o.epoch, true)
        THEN excluded.position ELSE o.position END,
    epoch = CASE WHEN coalesce(excluded.epoch > o.epoch, o.epoch IS NULL) THEN excluded.epoch ELSE o.epoch END,
    moved_at = excluded.moved_at
RETURNING coalesce(
    o.last_position || ' ' || coalesce(o.last_epoch::text, '-') || ' ' || o.last_event_id, ''
) AS answer
