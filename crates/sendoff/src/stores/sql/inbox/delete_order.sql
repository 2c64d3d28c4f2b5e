-- Not what has moved on since.
{delete_from_inbox_order}
WHERE i.consumer = {:consumer} AND i.source = {:source} AND i.{key} IN ({:keys}) AND i.moved_at < {:before}
