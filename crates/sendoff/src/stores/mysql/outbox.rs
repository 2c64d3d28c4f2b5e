//! An outbox in MariaDB or MySQL.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::{AssertSqlSafe, Executor as _};

use super::{BEGIN, MysqlDatabase, MysqlTable, arguments, errors, layout, rows};
use crate::claim::{ClaimSpec, Record, Table, Value};
use crate::error::{StoreError, StoreErrorKind};
use crate::event::NewEvent;
use crate::stores::sql::{
    Dialect, HostConnection, Plan, Script, SqlDatabase, SqlTransaction, Statement, Templates,
    enqueue_statements, host_connection, host_read, host_session, sql_transaction,
};

/// An outbox in a MariaDB or MySQL database.
pub type MysqlOutbox = crate::stores::SqlOutbox<MysqlDatabase>;

/// Who migrates waits so long for another one to be done, in seconds.
const MIGRATION_WAIT: u32 = 60;

#[async_trait]
impl SqlDatabase for MysqlDatabase {
    type Lanes = MysqlTable<Record>;

    fn dialect(&self) -> Dialect {
        Dialect::Mysql
    }

    fn time_to_try(&self) -> Duration {
        self.patience
    }

    fn collation(&self) -> &'static str {
        // Every other one finds 'a' = 'A' or 'a' = 'a '.
        if self.server.version().contains("MariaDB") { "utf8mb4_nopad_bin" } else { "utf8mb4_0900_bin" }
    }

    async fn open_lanes(&self, table: Table) -> Result<Self::Lanes, StoreError> {
        self.table(table).await
    }

    async fn explain_claim(&self, table: &Self::Lanes, spec: &ClaimSpec) -> Result<Plan, StoreError> {
        table.explain(spec).await
    }

    async fn begin(&self, op: &'static str) -> Result<Box<dyn SqlTransaction>, StoreError> {
        let convert = |error| errors::convert(op, SUBJECT, error);
        let mut connection = self.connections.acquire().await.map_err(convert)?;
        connection.execute(BEGIN).await.map_err(convert)?;
        Ok(Box::new(Transaction { connection: Some(connection), op, keeps_statements: true, _guard: () }))
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
        let sql = AssertSqlSafe(format!("EXPLAIN {}", statement.sql));
        let query = sqlx::query_with(sql, arguments(statement).map_err(convert)?).persistent(false);
        let rows = query.fetch_all(&mut *connection).await.map_err(convert)?;
        connection.keep();
        layout::plan(&rows).map_err(convert)
    }

    /// There is no transaction around a schema here: a named lock keeps others out, and every statement may be run again.
    async fn run_schema(&self, lock: &str, script: &str) -> Result<(), StoreError> {
        let convert = |error| errors::convert("migrate", SUBJECT, error);
        let mut connection = self.connections.acquire().await.map_err(convert)?;
        let name = format!("sendoff migration {lock}");
        let got: Option<i64> = sqlx::query_scalar("SELECT GET_LOCK(?, ?)")
            .bind(&name)
            .bind(MIGRATION_WAIT)
            .fetch_one(&mut *connection)
            .await
            .map_err(convert)?;
        if got != Some(1) {
            let detail = format!("another migration has been running for {MIGRATION_WAIT} s");
            return Err(StoreError::new(StoreErrorKind::Contended, "migrate", SUBJECT, detail));
        }
        let ran = sqlx::raw_sql(AssertSqlSafe(script.to_owned())).execute(&mut *connection).await;
        // Closed, so that the lock goes with it whatever happened.
        connection.discard();
        ran.map(drop).map_err(convert)
    }
}

const SUBJECT: &str = "outbox";

sql_transaction!(sqlx::MySql, sqlx::mysql::MySqlRow, ());

host_session!(sqlx::MySql, sqlx::MySqlConnection, Dialect::Mysql);

host_connection!(sqlx::MySql, sqlx::MySqlConnection, Dialect::Mysql);
