-- Found by their ids: the index by status must not be thought better.
WITH done AS (
    UPDATE {task} AS t
    SET status = 'completed', finished_at = {now}, lease_until = NULL
    FROM unnest({:tasks}::uuid[], {:attempts}::bigint[], {:owners}::uuid[]) AS k (task, attempt, owner)
    WHERE t.id = k.task AND t.attempt = k.attempt AND t.owner = k.owner AND (t.status = 'running') IS TRUE
    RETURNING t.id, t.attempt, t.owner
),
told AS (
    INSERT INTO {task_event} (task, event, attempt, owner, at)
    SELECT d.id, 'TaskCompleted', d.attempt, d.owner, {now} FROM done AS d
)
SELECT d.id, d.attempt, d.owner FROM done AS d
