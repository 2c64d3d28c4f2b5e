//! What the outbox's engine needs of PostgreSQL.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::TryStreamExt as _;
use sqlx::postgres::{PgConnection, PgRow};
use sqlx::{AssertSqlSafe, Either, Executor as _, Row as _};

use super::super::{BEGIN, Pooler, PostgresDatabase, PostgresTable, arguments, errors, layout, rows};
use crate::claim::{ClaimSpec, Record, Table, Value};
use crate::error::StoreError;
use crate::stores::sql::{
    AtOnce, Dialect, Plan, SqlDatabase, SqlTransaction, Statement, host_session, sql_transaction,
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
        connection.execute(BEGIN).await.map_err(convert)?;
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

    async fn query_at_once(&self, op: &'static str, script: &AtOnce) -> Result<Vec<Vec<Value>>, StoreError> {
        let convert = |error| errors::convert(op, SUBJECT, error);
        let mut connection = self.connections.acquire().await.map_err(convert)?;
        let mut answer = rows_of_last(&mut connection, &script.text).await;
        if answer.as_ref().is_err_and(|error| errors::has_code(error, NOT_PREPARED)) {
            // The first time in this connection.
            answer = match prepare(&mut connection, &script.prepare).await {
                Ok(()) => rows_of_last(&mut connection, &script.text).await,
                Err(error) => Err(error),
            };
        }
        match answer.and_then(|rows| values(&rows)) {
            Ok(rows) => {
                connection.keep();
                Ok(rows)
            }
            Err(error) => {
                // It may be in a transaction that failed.
                connection.discard();
                Err(convert(error))
            }
        }
    }

    fn keeps_prepared(&self) -> bool {
        self.pooler == Pooler::None
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
        connection.execute(BEGIN).await.map_err(convert)?;
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

/// invalid_sql_statement_name
const NOT_PREPARED: &str = "26000";
/// duplicate_prepared_statement
const PREPARED_BEFORE: &str = "42P05";

/// Runs a text of several statements; the rows of the last one.
async fn rows_of_last(connection: &mut PgConnection, text: &str) -> Result<Vec<PgRow>, sqlx::Error> {
    let mut answers = sqlx::raw_sql(AssertSqlSafe(text.to_owned())).fetch_many(connection);
    let (mut rows, mut last) = (Vec::new(), Vec::new());
    while let Some(answer) = answers.try_next().await? {
        match answer {
            Either::Right(row) => rows.push(row),
            // The end of a statement.
            Either::Left(_) => last = std::mem::take(&mut rows),
        }
    }
    Ok(last)
}

/// Prepares statements in a connection whose transaction has failed for want of one of them. Others may be there already.
async fn prepare(connection: &mut PgConnection, statements: &[String]) -> Result<(), sqlx::Error> {
    sqlx::raw_sql("ROLLBACK").execute(&mut *connection).await?;
    for statement in statements {
        match sqlx::raw_sql(AssertSqlSafe(statement.clone())).execute(&mut *connection).await {
            Err(error) if !errors::has_code(&error, PREPARED_BEFORE) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// What EXPLAIN printed.
pub(super) fn plan_lines(rows: &[PgRow]) -> Vec<String> {
    rows.iter().filter_map(|row| row.try_get(0).ok()).collect()
}

const SUBJECT: &str = "outbox";

sql_transaction!(sqlx::Postgres, PgRow, ());

host_session!(sqlx::Postgres, sqlx::PgConnection, Dialect::Postgres);
