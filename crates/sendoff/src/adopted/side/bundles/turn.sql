-- A turn to claim, from its beginning to its end, and the rows that it gave, when others may claim again.
BEGIN ISOLATION LEVEL READ COMMITTED;
-- The next claim need not wait for the disk: one that is lost with the server costs a redelivery, and its proof is never given out again. The ids that are claimed are looked up in a
-- hash table, which the planner does not use if it might not fit. And the index that gives the rows in their order is used though the table is small now: the plan is kept.
SELECT
    set_config('synchronous_commit', 'off', true), set_config('work_mem', '64MB', true),
    set_config('enable_sort', 'off', true), set_config('jit', 'off', true),
    pg_advisory_xact_lock(hashtextextended({:lock}, 0));
{claim};
COMMIT;
{read}
