//! What the outbox's engine needs of PostgreSQL.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use super::super::{Pooler, PostgresDatabase, PostgresTable, arguments, errors, layout, rows};
use crate::claim::{ClaimSpec, Record, Table, Value};
use crate::error::StoreError;
use crate::stores::sql::{
    Dialect, Plan, SqlDatabase, SqlTransaction, Statement, host_session, sql_transaction,
};

#[async_trait]
impl SqlDatabase for PostgresDatabase {
    type Lanes = PostgresTable<Record>;

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
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
        let mut connection = self.connections.acquire().await.map_err(convert)?;
        connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED").await.map_err(convert)?;
        Ok(Box::new(Transaction {
            connection: Some(connection),
            op,
            keeps_statements: self.pooler == Pooler::None,
            _guard: (),
        }))
    }

    async fn query(&self, op: &'static str, statement: &Statement) -> Result<Vec<Vec<Value>>, StoreError> {
        let rows = self.run(op, SUBJECT, statement).await?;
        values(&rows).map_err(|error| errors::convert(op, SUBJECT, error))
    }

    async fn run_at_once(&self, op: &'static str, script: &str) -> Result<(), StoreError> {
        let convert = |error| errors::convert(op, SUBJECT, error);
        let mut connection = self.connections.acquire().await.map_err(convert)?;
        match sqlx::raw_sql(AssertSqlSafe(script.to_owned())).execute(&mut *connection).await {
            Ok(_) => {
                connection.keep();
                Ok(())
            }
            Err(error) => {
                // It may be in a transaction that failed.
                connection.discard();
                Err(convert(error))
            }
        }
    }

    async fn explain(&self, statement: &Statement) -> Result<Plan, StoreError> {
        let sql = format!("EXPLAIN (COSTS OFF) {}", statement.sql);
        let rows = self.run("explain", SUBJECT, &Statement { sql, binds: statement.binds.clone() }).await?;
        Ok(layout::fetch_plan(&plan_lines(&rows), "f"))
    }

    /// In one transaction, which one process runs at a time.
    async fn run_schema(&self, lock: &str, script: &str) -> Result<(), StoreError> {
        let convert = |error| errors::convert("migrate", SUBJECT, error);
        let mut connection = self.connections.acquire().await.map_err(convert)?;
        connection.execute("BEGIN").await.map_err(convert)?;
        let name = format!("sendoff migration {lock}");
        let ran = async {
            sqlx::query("SELECT pg_advisory_xact_lock(hashtextextended($1, 0))")
                .bind(name)
                .persistent(false)
                .execute(&mut *connection)
                .await?;
            sqlx::raw_sql(AssertSqlSafe(script.to_owned())).execute(&mut *connection).await?;
            sqlx::raw_sql("COMMIT").execute(&mut *connection).await
        }
        .await;
        match ran {
            Ok(_) => {
                connection.keep();
                Ok(())
            }
            Err(error) => {
                connection.discard();
                Err(convert(error))
            }
        }
    }
}

/// What EXPLAIN printed.
pub(super) fn plan_lines(rows: &[PgRow]) -> Vec<String> {
    rows.iter().filter_map(|row| row.try_get(0).ok()).collect()
}

const SUBJECT: &str = "outbox";

sql_transaction!(sqlx::Postgres, PgRow, ());

host_session!(sqlx::Postgres, sqlx::PgConnection, Dialect::Postgres);
