//! What an adopted table needs of PostgreSQL.

use sqlx::Row as _;

use super::super::sql::{COUNT, READ, fit};
use super::{PostgresTable, claim_template, layout};
use crate::adopted::{Database, Fit, RowTable};
use crate::claim::{ClaimSpec, Record, Value};
use crate::error::StoreError;
use crate::stores::sql::{Dialect, SqlDatabase as _, Statement};

/// A small table is read whole and sorted, whatever indexes it has: what counts is what could be done with many rows.
const AS_IF_LARGE: [&str; 3] =
    ["SET LOCAL enable_seqscan = off", "SET LOCAL enable_bitmapscan = off", "SET LOCAL enable_sort = off"];

impl RowTable for PostgresTable<Record> {
    fn database(&self) -> Database {
        Database::Postgres
    }

    fn fit(&self, column: &str, value: &Value) -> Fit {
        fit(Dialect::Postgres, &self.layout, column, value)
    }

    async fn read(&self, spec: &ClaimSpec) -> Result<Vec<Record>, StoreError> {
        let statement = self.renderer(spec)?.fill(READ)?;
        let rows = self.run("read", &statement).await?;
        PostgresTable::read(self, "read", &rows)
    }

    async fn count(&self, spec: &ClaimSpec) -> Result<u64, StoreError> {
        let statement = self.renderer(spec)?.fill(COUNT)?;
        let rows = self.run("count", &statement).await?;
        let counted = rows.first().and_then(|row| row.try_get::<i64, _>(0).ok());
        Ok(counted.and_then(|counted| u64::try_from(counted).ok()).unwrap_or_default())
    }

    async fn is_servable(&self, spec: &ClaimSpec) -> Result<bool, StoreError> {
        let plain = |sql: &str| Statement { sql: sql.to_owned(), binds: Vec::new() };
        let mut transaction = self.database.begin("explain").await?;
        for setting in AS_IF_LARGE {
            transaction.execute(&plain(setting)).await?;
        }
        let mut statement = self.renderer(spec)?.fill(claim_template(spec))?;
        statement.sql.insert_str(0, "EXPLAIN (COSTS OFF) ");
        let rows = transaction.query(&statement).await?;
        transaction.rollback().await?;
        let lines = rows.into_iter().filter_map(|row| match row.into_iter().next() {
            Some(Value::Text(line)) => Some(line),
            _ => None,
        });
        Ok(layout::plan(&lines.collect::<Vec<_>>()).is_served_by_index())
    }
}
