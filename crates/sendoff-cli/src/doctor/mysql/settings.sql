-- What new sessions begin with.
SHOW GLOBAL VARIABLES WHERE Variable_name IN (
    'tx_isolation', 'transaction_isolation', 'log_bin', 'binlog_format', 'auto_increment_increment', 'sql_mode',
    'innodb_flush_log_at_trx_commit'
)
