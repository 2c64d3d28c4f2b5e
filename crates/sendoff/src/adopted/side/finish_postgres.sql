-- Ends claims that are still held, and writes what became of their rows into the host's table, in one statement. The host's row first, as a claim of new rows has it:
-- the other way round the two wait for each other.
WITH held AS MATERIALIZED (
    SELECT s.id, s.attempts FROM {side} AS s
    WHERE s.id {in_ids} AND s.token = {:token} AND s.owner = {:owner}
    FOR UPDATE OF s
), written AS (
    {write}
), ended AS (
    DELETE FROM {side} AS s USING written WHERE s.id = written.id
)
SELECT held.id FROM held
