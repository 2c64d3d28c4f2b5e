WITH token AS MATERIALIZED (
    SELECT k.task, k.attempt, k.owner
    FROM unnest({:tasks}::uuid[], {:attempts}::bigint[], {:owners}::uuid[]) AS k (task, attempt, owner)
),
-- Found by their ids, and held against the tokens one by one. The index by status must not be thought better, and a join must not be thought of: where
-- statistics know of no running task it would read the whole table, and compare each that runs with each token.
done AS (
    UPDATE {task} AS t
    SET status = 'completed', finished_at = {now}, lease_until = NULL
    WHERE t.id = ANY (ARRAY(SELECT k.task FROM token AS k))
        AND (t.status = 'running') IS TRUE
        AND ((t.id, t.attempt, t.owner) IN (SELECT k.task, k.attempt, k.owner FROM token AS k)) IS TRUE
    RETURNING t.id, t.attempt, t.owner
),
told AS (
    INSERT INTO {task_event} (task, event, attempt, owner, at)
    SELECT d.id, 'TaskCompleted', d.attempt, d.owner, {now} FROM done AS d
)
SELECT d.id, d.attempt, d.owner FROM done AS d
