CREATE TABLE "{schema}".task_executions (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
    task_name text NOT NULL,
    payload bytea NOT NULL,
    status text NOT NULL,
    attempt integer NOT NULL DEFAULT 1,
    worker_id uuid,
    started_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE "{schema}".task_outbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_execution_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON "{schema}".task_outbox (created_at);
CREATE INDEX ON "{schema}".task_executions (status);
