WITH new AS (
    INSERT INTO "{schema}".task_executions (task_name, payload, status)
    SELECT 'work', '\x7b7d', 'Ready' FROM generate_series(1, {tasks})
    RETURNING id
)
INSERT INTO "{schema}".task_outbox (task_execution_id) SELECT id FROM new;
