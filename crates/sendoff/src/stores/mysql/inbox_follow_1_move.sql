-- As elsewhere; here what is set is set from left to right, and later ones see it: first what stood before, then position and epoch.
INSERT INTO {inbox_order} (consumer, source, {key}, event_id, position, epoch, moved_at)
VALUES ({:consumer}, {:source}, {:key}, {:event_id}, {:position}, {:epoch}, {now})
ON DUPLICATE KEY UPDATE
    last_event_id = event_id,
    last_position = position,
    last_epoch = epoch,
    event_id = IF(
        VALUES(position) > last_position AND COALESCE(VALUES(epoch) >= last_epoch, TRUE), VALUES(event_id), event_id
    ),
    position = IF(
        VALUES(position) > last_position AND COALESCE(VALUES(epoch) >= last_epoch, TRUE), VALUES(position), position
    ),
    epoch = IF(COALESCE(VALUES(epoch) > last_epoch, last_epoch IS NULL), VALUES(epoch), epoch),
    moved_at = VALUES(moved_at)
