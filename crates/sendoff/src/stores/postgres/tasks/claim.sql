-- Each kind's next entries are looked at first, without locks, so that no more are locked than are taken.
WITH wanted AS MATERIALIZED {:wanted},
picked AS MATERIALIZED (
    SELECT s.task, s.place
    FROM wanted AS w
    CROSS JOIN LATERAL (
        SELECT e.task, e.ctid AS place
        FROM {task_entry} AS e
        WHERE e.waiting = 0 AND e.kind = w.kind
        ORDER BY e.turn, e.due_at, e.task
        LIMIT w.many
        FOR UPDATE OF e SKIP LOCKED
    ) AS s
),
-- By its place: an entry that is not waiting is never updated, and this one is locked.
gone AS (
    DELETE FROM {task_entry} AS e WHERE e.ctid = ANY (ARRAY(SELECT p.place FROM picked AS p))
),
-- Not ready: it was called off while its entry was locked here. Found by their ids: the index by status must not be thought better.
claimed AS (
    UPDATE {task} AS t
    SET status = 'running', owner = {:worker}, attempt = t.attempt + 1, started_at = {now}, lease_until = {run_end}, progress = NULL
    WHERE t.id = ANY (ARRAY(SELECT p.task FROM picked AS p)) AND (t.status = 'ready') IS TRUE
    RETURNING t.*
),
told AS (
    INSERT INTO {task_event} (task, event, attempt, owner, at)
    SELECT c.id, 'TaskClaimed', c.attempt, c.owner, {now} FROM claimed AS c
)
SELECT
    c.id, c.kind, c.payload, c.status, c.priority, c.unique_key, c.run_at, c.attempt, c.attempts_max, c.run_time,
    c.owner, c.lease_until, c.created_at, c.started_at, c.finished_at, c.error, c.progress, {now} AS now
FROM claimed AS c
