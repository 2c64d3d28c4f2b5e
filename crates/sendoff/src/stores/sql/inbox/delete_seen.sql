{delete_from_inbox_seen}
WHERE i.consumer = {:consumer} AND i.event_id IN ({:ids}) AND i.seen_at < {:before}
