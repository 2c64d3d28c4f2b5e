//! What is old is removed from its table, a batch at a time, by claims: whoever purges beside others gets other rows than they do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OnceCell;

use super::{Names, Plan, SqlDatabase};
use crate::claim::{ClaimSpec, Claimable as _, Table, TableName, col, now_minus};
use crate::error::StoreError;

/// Nothing is older, and every database can count back so far.
pub(crate) const OLDEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A table of ours whose rows are removed when they are old.
#[derive(Clone)]
pub(crate) struct Aging<D: SqlDatabase> {
    database: D,
    name: TableName,
    key: &'static [&'static str],
    /// Since when a row is there. There is an index of the key's first column, which says whose it is, and of this one.
    since: &'static str,
    /// Opened when it is first purged: most programs never do.
    opened: Arc<OnceCell<D::Lanes>>,
}

impl<D: SqlDatabase> fmt::Debug for Aging<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Aging").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<D: SqlDatabase> Aging<D> {
    pub(crate) fn new(
        database: &D,
        names: &Names,
        table: &str,
        key: &'static [&'static str],
        since: &'static str,
    ) -> Result<Self, StoreError> {
        let name = names.table(table)?;
        Ok(Self { database: database.clone(), name, key, since, opened: Arc::default() })
    }

    async fn open(&self) -> Result<&D::Lanes, StoreError> {
        let open = || async {
            // What is removed is counted, and need not travel.
            let last = self.key.last().copied();
            let table = Table::named(self.name.clone(), self.key.iter().copied())?.returning(last)?;
            self.database.open_lanes(table).await
        };
        self.opened.get_or_try_init(open).await
    }

    fn old(&self, whose: &str, older_than: Duration, batch: u32) -> Result<ClaimSpec, StoreError> {
        let of = self.key.first().copied().unwrap_or_default();
        let before = now_minus(older_than.min(OLDEST));
        ClaimSpec::on_table(self.name.clone())
            .eligible(col(of).eq(whose).and(col(self.since).lt(before)))
            .remove()
            // By the index and nothing else: a second column to break ties would want a sort.
            .order_by(self.since)
            .limit(batch)
            .build()
    }

    /// Removes the oldest of what is older than this, up to so many; how many they were.
    pub(crate) async fn purge(
        &self,
        whose: &str,
        older_than: Duration,
        batch: u32,
    ) -> Result<u64, StoreError> {
        let removed = self.open().await?.claim(&self.old(whose, older_than, batch)?).await?;
        Ok(removed.len() as u64)
    }

    /// How the database would find them now. Removes nothing.
    pub(crate) async fn explain(
        &self,
        whose: &str,
        older_than: Duration,
        batch: u32,
    ) -> Result<Plan, StoreError> {
        let spec = self.old(whose, older_than, batch)?;
        self.database.explain_claim(self.open().await?, &spec).await
    }
}
