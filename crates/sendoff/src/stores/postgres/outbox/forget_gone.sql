DELETE FROM {worker} AS w
WHERE w.worker = ANY ($2) AND NOT EXISTS (
    SELECT 1 FROM {lane} AS l WHERE l.target = $1 AND l.owner = w.worker
)
