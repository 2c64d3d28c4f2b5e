//! What an adopted table needs of SQLite.

use super::super::sql::{READ, fit, retry};
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

    async fn is_servable(&self, spec: &ClaimSpec) -> Result<bool, StoreError> {
        Ok(self.explain(spec).await?.is_served_by_index())
    }
}
