# A service has been here: two of its mails failed.
sendoff tasks migrate
TASK=0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001
sqlite <<'SQL'
INSERT INTO sendoff_task
    (id, kind, payload, status, priority, run_at, attempt, attempts_max, created_at, started_at, finished_at, error)
VALUES
    ('0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001', 'mail.send', '{}', 'failed', 0, 1, 5, 5, 1, 1, 1, 'no such address'),
    ('0190c2a4-7b5e-7c3a-9f00-5d2a61b7c002', 'mail.send', '{}', 'failed', 0, 1, 5, 5, 1, 1, 1, 'no such address');
INSERT INTO sendoff_task_event (task, event, attempt, at, detail)
VALUES
    ('0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001', 'TaskCreated', 0, 1, NULL),
    ('0190c2a4-7b5e-7c3a-9f00-5d2a61b7c001', 'TaskFailed', 5, 1, 'no such address');
SQL
printf 'TASK=%s\n' "$TASK" > variables
