-- Sessions whose transaction has been open for long. The server tells its beginning in its own zone.
SELECT
    CAST(t.trx_mysql_thread_id AS SIGNED) AS thread, CAST(COALESCE(p.user, '') AS CHAR) AS user,
    CAST(COALESCE(p.host, '') AS CHAR) AS host, CAST(COALESCE(p.command, '') AS CHAR) AS command,
    CAST(t.trx_rows_modified AS SIGNED) AS modified,
    CAST(TIMESTAMPDIFF(SECOND, CONVERT_TZ(t.trx_started, 'SYSTEM', '+00:00'), UTC_TIMESTAMP()) AS SIGNED) AS seconds
FROM information_schema.innodb_trx AS t
LEFT JOIN information_schema.processlist AS p ON p.id = t.trx_mysql_thread_id
WHERE t.trx_mysql_thread_id NOT IN (0, CONNECTION_ID())
    AND TIMESTAMPDIFF(SECOND, CONVERT_TZ(t.trx_started, 'SYSTEM', '+00:00'), UTC_TIMESTAMP()) >= ?
ORDER BY t.trx_started
LIMIT 10
