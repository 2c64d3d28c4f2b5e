//! What an adopted table needs of tables in memory.

use super::MemoryTable;
use crate::adopted::{Database, Fit, RowTable};
use crate::claim::{ClaimSpec, Record, Value};
use crate::error::StoreError;

impl RowTable for MemoryTable<Record> {
    fn database(&self) -> Database {
        Database::Memory
    }

    /// Its columns hold anything.
    fn fit(&self, column: &str, _value: &Value) -> Fit {
        match self.database.lock().rows(&self.name).has_column(column) {
            true => Fit::Fits,
            false => Fit::Missing(format!("no column `{column}`")),
        }
    }

    async fn read(&self, spec: &ClaimSpec) -> Result<Vec<Record>, StoreError> {
        let mut shared = self.database.lock();
        let now = shared.now();
        let rows = shared.rows(&self.name);
        rows.accepts(spec)?;
        Ok(rows.find(spec, now)?.into_iter().map(|index| rows.at(index)).collect())
    }

    async fn count(&self, spec: &ClaimSpec) -> Result<u64, StoreError> {
        Ok(self.read(spec).await?.len() as u64)
    }

    /// It has no indexes, and no need for them.
    async fn is_servable(&self, _spec: &ClaimSpec) -> Result<bool, StoreError> {
        Ok(true)
    }
}
