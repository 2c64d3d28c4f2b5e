-- As this role's sessions have them.
SELECT
    current_setting('default_transaction_isolation') AS isolation,
    current_setting('autovacuum')::boolean AS autovacuum,
    current_setting('track_counts')::boolean AS track_counts,
    current_setting('fsync')::boolean AS fsync,
    current_setting('synchronous_commit') AS synchronous_commit,
    pg_has_role('pg_read_all_stats', 'USAGE') AS sees_all,
    current_user::text AS role
