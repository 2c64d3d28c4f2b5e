UPDATE {task} AS t {force_primary}
SET status = 'running', owner = {:worker}, attempt = t.attempt + 1, started_at = {:now}, lease_until = {run_end}, progress = NULL
WHERE t.id IN ({:tasks})
