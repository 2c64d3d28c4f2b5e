-- The highest position given out. A sequence that nobody has used says 1 and means 0.
SELECT s.last_value - CASE WHEN s.is_called THEN 0 ELSE 1 END AS position FROM {sequence} AS s
