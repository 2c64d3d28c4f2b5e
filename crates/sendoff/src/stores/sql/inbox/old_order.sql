SELECT o.source, o.{key}
FROM {inbox_order} AS o {force_by_time}
WHERE o.consumer = {:consumer} AND o.moved_at < {:before}
ORDER BY o.moved_at
LIMIT {:limit}
