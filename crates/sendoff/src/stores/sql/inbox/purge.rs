//! Forgetting what is old, a batch at a time.

use std::time::Duration;

use super::{Plan, SqlDatabase, SqlInbox};
use crate::error::StoreError;

impl<D: SqlDatabase> SqlInbox<D> {
    /// Consumer by consumer, until a batch is full.
    pub(super) async fn purge_old(&self, older_than: Duration, batch: u32) -> Result<u64, StoreError> {
        let mut purged = 0;
        let mut consumer = String::new();
        while purged < u64::from(batch) {
            let Some(next) = self.next_consumer(&consumer).await? else { break };
            consumer = next;
            for table in [&self.seen, &self.order] {
                let left = u32::try_from(u64::from(batch).saturating_sub(purged)).unwrap_or(batch);
                purged += table.purge(&consumer, older_than, left).await?;
            }
        }
        Ok(purged)
    }

    /// How the database would find what a purge forgets of a consumer: its events, then its keys. Forgets nothing.
    ///
    /// # Errors
    /// As [`purge`](crate::inbox::Inspect::purge).
    pub async fn explain_purge(
        &self,
        consumer: &str,
        older_than: Duration,
        batch: u32,
    ) -> Result<[Plan; 2], StoreError> {
        Ok([
            self.seen.explain(consumer, older_than, batch).await?,
            self.order.explain(consumer, older_than, batch).await?,
        ])
    }
}
