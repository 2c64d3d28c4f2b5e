//! The framework outbox of ADR-0013 under the names of its own repository.

use std::time::Duration;

use super::inspect::{Listing, RowState};
use super::presets;
use super::source::{Adopted, Batch};
use super::table::RowTable;
use crate::error::StoreError;
use crate::stores::sql::SqlDatabase;

/// How long a claim of the framework lasts, unless it is said.
pub const FRAMEWORK_LEASE: Duration = Duration::from_secs(5 * 60);

/// A framework's outbox: its claim, and the look-ups that read only.
#[derive(Debug, Clone)]
pub struct Framework {
    rows: Adopted,
    lease: Duration,
}

impl Framework {
    /// Opens its table.
    ///
    /// # Errors
    /// As [`Adopted::open`].
    pub async fn open<D>(database: &D, table: &str) -> Result<Self, StoreError>
    where
        D: SqlDatabase,
        D::Lanes: RowTable,
    {
        let rows = Adopted::open(database, presets::framework_rows(table)?).await?;
        Ok(Self { rows, lease: FRAMEWORK_LEASE })
    }

    /// Claims for this long instead of five minutes.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = lease;
        self
    }

    /// The table, for what else there is.
    pub fn rows(&self) -> &Adopted {
        &self.rows
    }

    /// Claims up to `limit` rows, of one target broker if it is named.
    ///
    /// # Errors
    /// As the store's.
    pub async fn claim_batch(
        &self,
        worker_id: &str,
        limit: u32,
        target_broker: Option<&str>,
    ) -> Result<Batch, StoreError> {
        let rows = match target_broker {
            Some(broker) => self.rows.only("target_broker", broker)?,
            None => self.rows.clone(),
        };
        rows.claim_batch(worker_id, limit, self.lease).await
    }

    /// Rows that a claim would take now.
    ///
    /// # Errors
    /// As the store's.
    pub async fn find_unprocessed(&self, limit: u32) -> Result<Vec<Listing>, StoreError> {
        self.rows.list(RowState::Unprocessed, limit).await
    }

    /// Rows that failed and wait for their retry.
    ///
    /// # Errors
    /// As the store's.
    pub async fn find_failed(&self, limit: u32) -> Result<Vec<Listing>, StoreError> {
        self.rows.list(RowState::Failed, limit).await
    }

    /// Rows that were given up, in the framework's word abandoned. Those whose worker was lost are [`RowState::Expired`].
    ///
    /// # Errors
    /// As the store's.
    pub async fn find_abandoned(&self, limit: u32) -> Result<Vec<Listing>, StoreError> {
        self.rows.list(RowState::Dead, limit).await
    }

    /// Rows that were delivered.
    ///
    /// # Errors
    /// As the store's.
    pub async fn find_published(&self, limit: u32) -> Result<Vec<Listing>, StoreError> {
        self.rows.list(RowState::Published, limit).await
    }

    /// Rows that a worker has.
    ///
    /// # Errors
    /// As the store's.
    pub async fn find_processing(&self, limit: u32) -> Result<Vec<Listing>, StoreError> {
        self.rows.list(RowState::Processing, limit).await
    }
}
