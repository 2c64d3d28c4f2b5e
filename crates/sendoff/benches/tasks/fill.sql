-- A time-ordered id, as programs make it.
WITH new AS (
    INSERT INTO "{schema}".task (id, kind, payload, status, priority, run_at, attempts_max, created_at)
    SELECT
        encode(
            overlay(uuid_send(gen_random_uuid()) PLACING substring(int8send({first} + i) FROM 3) FROM 1 FOR 6), 'hex'
        )::uuid,
        'work', '\x7b7d', 'ready', {priority}, now() + {wait}, 10, now()
    FROM generate_series(1, {tasks}) AS i
    RETURNING id, kind, priority, run_at
)
INSERT INTO "{schema}".task_entry (task, kind, waiting, turn, due_at)
SELECT id, kind, CASE WHEN run_at > now() THEN 1 ELSE 0 END, 0 - priority, run_at FROM new;
