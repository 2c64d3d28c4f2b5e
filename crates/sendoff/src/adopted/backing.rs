//! Where the claims of a host's rows are kept: in its own table, or beside it.

use std::collections::HashSet;
use std::fmt;
use std::future::Future;
use std::time::Duration;

use super::leases::{self, Answer, Change, Grant};
use super::mapping::Mapping;
use super::reading::Row;
use super::table::RowTable;
use crate::claim::{Key, Record};
use crate::error::StoreError;

/// Where claims are kept, and how the rows that were claimed are read.
pub(super) trait Backing: fmt::Debug + Send + Sync + 'static {
    /// The table that claims are written to.
    type Claims: RowTable;

    fn claims(&self) -> &Self::Claims;

    /// What the columns of claims mean.
    fn mapping(&self) -> &Mapping;

    /// Makes what is new in the host's table claimable; how many that were. `room`: so many would be claimed.
    fn take_in(&self, room: u32) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// New rows are claimed as they are taken in, by [`claim_new`](Self::claim_new); what is left for other claims is what failed or was lost.
    fn claims_new(&self) -> bool {
        false
    }

    /// Takes in what is new, and claims it.
    fn claim_new(
        &self,
        grant: &Grant,
        lease: Duration,
        room: u32,
        target: &str,
    ) -> impl Future<Output = Result<Vec<Row>, StoreError>> + Send {
        let _ = (grant, lease, room, target);
        std::future::ready(Ok(Vec::new()))
    }

    /// Makes claimable by [`claims`](Self::claims) what was lost with its worker and is not yet.
    fn return_lost(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Prolongs leases; which of the rows are still held.
    fn renew(
        &self,
        grant: &Grant,
        lease: Duration,
        rows: &[Key],
    ) -> impl Future<Output = Result<HashSet<Vec<u8>>, StoreError>> + Send {
        leases::renew(self.claims(), self.mapping(), grant, lease, rows)
    }

    /// Takes away what is no longer needed, a little at a time.
    fn sweep(&self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The events of rows that were claimed. What is gone from the host's table is left out.
    fn read(
        &self,
        records: Vec<Record>,
        target: &str,
    ) -> impl Future<Output = Result<Vec<Row>, StoreError>> + Send;

    /// Writes what became of rows.
    fn settle(
        &self,
        grant: &Grant,
        rows: &[Key],
        change: &Change,
    ) -> impl Future<Output = Result<Vec<Answer>, StoreError>> + Send;
}

/// Claims are columns of the host's own table.
#[derive(Debug)]
pub(super) struct Own<T> {
    pub(super) table: T,
    /// The same, with what an operator wants to see.
    pub(super) seen: T,
    pub(super) mapping: Mapping,
}

impl<T: RowTable> Backing for Own<T> {
    type Claims = T;

    fn claims(&self) -> &T {
        &self.table
    }

    fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    async fn take_in(&self, _room: u32) -> Result<u64, StoreError> {
        Ok(0)
    }

    async fn sweep(&self) -> Result<(), StoreError> {
        Ok(())
    }

    async fn read(&self, records: Vec<Record>, target: &str) -> Result<Vec<Row>, StoreError> {
        records.iter().map(|record| self.mapping.read(record, None, target)).collect()
    }

    async fn settle(&self, grant: &Grant, rows: &[Key], change: &Change) -> Result<Vec<Answer>, StoreError> {
        leases::settle(&self.table, &self.mapping, grant, rows, change).await
    }
}
