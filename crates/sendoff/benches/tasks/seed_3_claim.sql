-- As it stands in the seed.
WITH claimed AS (
    DELETE FROM "{schema}".task_outbox
    WHERE id = (
        SELECT id FROM "{schema}".task_outbox
        ORDER BY created_at
        FOR UPDATE SKIP LOCKED
        LIMIT 1
    )
    RETURNING task_execution_id
)
UPDATE "{schema}".task_executions
SET status = 'Running', started_at = NOW(), worker_id = $1
FROM claimed
WHERE task_executions.id = claimed.task_execution_id
RETURNING task_executions.*
