//! What an adopted table needs of MariaDB or MySQL.

use sqlx::Row as _;

use super::super::sql::{COUNT, READ, fit, retry};
use super::{MysqlTable, errors, index};
use crate::adopted::{Database, Fit, RowTable};
use crate::claim::{ClaimSpec, Record, Value};
use crate::error::StoreError;
use crate::stores::sql::Dialect;

impl RowTable for MysqlTable<Record> {
    fn database(&self) -> Database {
        Database::Mysql
    }

    fn fit(&self, column: &str, value: &Value) -> Fit {
        fit(Dialect::Mysql, &self.layout, column, value)
    }

    async fn read(&self, spec: &ClaimSpec) -> Result<Vec<Record>, StoreError> {
        let statement = self.renderer(spec)?.fill(READ)?;
        let convert = |error| errors::convert("read", &self.subject, error);
        let rows = retry("read", &self.subject, self.database.patience, || async {
            let mut connection = self.database.connections.acquire().await.map_err(convert)?;
            let rows = self.fetch("read", &mut connection, &statement).await?;
            connection.keep();
            Ok(rows)
        })
        .await?;
        rows.iter().map(|row| sqlx::FromRow::from_row(row).map_err(convert)).collect()
    }

    async fn count(&self, spec: &ClaimSpec) -> Result<u64, StoreError> {
        let statement = self.renderer(spec)?.fill(COUNT)?;
        let rows = retry("count", &self.subject, self.database.patience, || async {
            let mut connection = self
                .database
                .connections
                .acquire()
                .await
                .map_err(|error| errors::convert("count", &self.subject, error))?;
            let rows = self.fetch("count", &mut connection, &statement).await?;
            connection.keep();
            Ok(rows)
        })
        .await?;
        let counted = rows.first().and_then(|row| row.try_get::<i64, _>(0).ok());
        Ok(counted.and_then(|counted| u64::try_from(counted).ok()).unwrap_or_default())
    }

    async fn is_servable(&self, spec: &ClaimSpec) -> Result<bool, StoreError> {
        // The index that a claim is told to use, if there is one.
        let named = self.layout.table().claim_index.is_some();
        Ok(named || index::for_claim(&self.indexes, spec).is_some())
    }
}
