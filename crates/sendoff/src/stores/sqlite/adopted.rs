//! What an adopted table needs of SQLite.

use sqlx::Row as _;

use super::super::sql::{COUNT, READ, fit, retry};
use super::SqliteTable;
use crate::adopted::{Database, Fit, RowTable};
use crate::claim::{ClaimSpec, Record, Value};
use crate::error::StoreError;
use crate::stores::sql::Dialect;

impl RowTable for SqliteTable<Record> {
    fn database(&self) -> Database {
        Database::Sqlite
    }

    fn fit(&self, column: &str, value: &Value) -> Fit {
        fit(Dialect::Sqlite, &self.layout, column, value)
    }

    async fn read(&self, spec: &ClaimSpec) -> Result<Vec<Record>, StoreError> {
        let statement = self.renderer(spec)?.fill(READ)?;
        let rows = retry("read", &self.subject, self.database.patience, || async {
            let mut connection = self.acquire("read").await?;
            let rows = self.fetch("read", &mut connection, &statement).await?;
            connection.keep();
            Ok(rows)
        })
        .await?;
        rows.iter().map(|row| SqliteTable::read(self, row)).collect()
    }

    async fn count(&self, spec: &ClaimSpec) -> Result<u64, StoreError> {
        let statement = self.renderer(spec)?.fill(COUNT)?;
        let rows = retry("count", &self.subject, self.database.patience, || async {
            let mut connection = self.acquire("count").await?;
            let rows = self.fetch("count", &mut connection, &statement).await?;
            connection.keep();
            Ok(rows)
        })
        .await?;
        let counted = rows.first().and_then(|row| row.try_get::<i64, _>(0).ok());
        Ok(counted.and_then(|counted| u64::try_from(counted).ok()).unwrap_or_default())
    }

    async fn is_servable(&self, spec: &ClaimSpec) -> Result<bool, StoreError> {
        Ok(self.explain(spec).await?.is_served_by_index())
    }
}
