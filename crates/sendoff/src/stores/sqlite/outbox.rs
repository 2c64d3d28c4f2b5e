//! An outbox in SQLite.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};
use tokio::sync::OwnedMutexGuard;

use super::{SqliteDatabase, SqliteTable, arguments, errors, layout, rows};
use crate::claim::{ClaimSpec, Record, Table, Value};
use crate::error::StoreError;
use crate::event::NewEvent;
use crate::stores::sql::{
    Dialect, HostConnection, Plan, Script, SqlDatabase, SqlTransaction, Statement, Templates,
    enqueue_statements, host_connection, host_read, host_session, retry, sql_transaction,
};

/// An outbox in a SQLite file. Every process that works on it must be on the file's own machine.
pub type SqliteOutbox = crate::stores::SqlOutbox<SqliteDatabase>;

#[async_trait]
impl SqlDatabase for SqliteDatabase {
    type Lanes = SqliteTable<Record>;

    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn time_to_try(&self) -> Duration {
        self.patience
    }

    async fn open_lanes(&self, table: Table) -> Result<Self::Lanes, StoreError> {
        self.table(table).await
    }

    async fn explain_claim(&self, table: &Self::Lanes, spec: &ClaimSpec) -> Result<Plan, StoreError> {
        table.explain(spec).await
    }

    async fn begin(&self, op: &'static str) -> Result<Box<dyn SqlTransaction>, StoreError> {
        let convert = |error| errors::convert(op, SUBJECT, error);
        let writer = std::sync::Arc::clone(&self.writer).lock_owned().await;
        let mut connection = self.connections.acquire().await.map_err(convert)?;
        connection.execute("BEGIN IMMEDIATE").await.map_err(convert)?;
        Ok(Box::new(Transaction { connection: Some(connection), op, keeps_statements: true, _guard: writer }))
    }

    async fn query(&self, op: &'static str, statement: &Statement) -> Result<Vec<Vec<Value>>, StoreError> {
        let convert = |error| errors::convert(op, SUBJECT, error);
        let mut connection = self.connections.acquire().await.map_err(convert)?;
        let arguments = arguments(statement).map_err(convert)?;
        let sql = AssertSqlSafe(statement.sql.clone());
        let rows = sqlx::query_with(sql, arguments).fetch_all(&mut *connection).await.map_err(convert)?;
        connection.keep();
        values(&rows).map_err(convert)
    }

    async fn explain(&self, statement: &Statement) -> Result<Plan, StoreError> {
        let convert = |error| errors::convert("explain", SUBJECT, error);
        let mut connection = self.connections.acquire().await.map_err(convert)?;
        let sql = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", statement.sql));
        let query = sqlx::query_with(sql, arguments(statement).map_err(convert)?).persistent(false);
        let rows = query.fetch_all(&mut *connection).await.map_err(convert)?;
        connection.keep();
        let lines: Vec<String> = rows.iter().filter_map(|row| row.try_get("detail").ok()).collect();
        Ok(layout::plan(&lines))
    }

    async fn run_schema(&self, _lock: &str, script: &str) -> Result<(), StoreError> {
        retry("migrate", SUBJECT, self.patience, || async {
            let convert = |error| errors::convert("migrate", SUBJECT, error);
            let _writer = self.writer.lock().await;
            let mut connection = self.connections.acquire().await.map_err(convert)?;
            let whole = format!("BEGIN IMMEDIATE;\n{script}\nCOMMIT;");
            if let Err(error) = sqlx::raw_sql(AssertSqlSafe(whole)).execute(&mut *connection).await {
                connection.discard();
                return Err(convert(error));
            }
            connection.keep();
            Ok(())
        })
        .await
    }
}

const SUBJECT: &str = "outbox";

sql_transaction!(sqlx::Sqlite, sqlx::sqlite::SqliteRow, OwnedMutexGuard<()>);

host_session!(sqlx::Sqlite, sqlx::SqliteConnection, Dialect::Sqlite);

host_connection!(sqlx::Sqlite, sqlx::SqliteConnection, Dialect::Sqlite);
