//! The inbox in SQL: what a consumer writes in its own transaction, and what an operator sees of it.

mod once;
mod purge;
mod stats;

use std::fmt;

use async_trait::async_trait;

pub use once::Inbox;
#[cfg(test)]
pub(super) use once::{follow_script, once_script};

use super::outbox::{Arg, Migration, Names, RowReader, SchemaSet, SqlDatabase, Templates, check_schema};
use super::{Aging, Plan, Statement, retry};
use crate::error::StoreError;
use crate::inbox::{InboxStats, Inspect};

/// The inbox of a database, for who looks after it: figures, and forgetting what is old. Consumers need none of it: they write with [`Inbox`].
#[derive(Clone)]
pub struct SqlInbox<D: SqlDatabase> {
    database: D,
    templates: Templates,
    seen: Aging<D>,
    order: Aging<D>,
}

impl<D: SqlDatabase> fmt::Debug for SqlInbox<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqlInbox").field("names", &self.templates.names).finish_non_exhaustive()
    }
}

impl<D: SqlDatabase> SqlInbox<D> {
    /// What makes its tables, under their usual names: `sendoff.inbox_seen` on PostgreSQL, `sendoff_inbox_seen` elsewhere. It stands apart from the outbox's: a database may have one without the
    /// other.
    ///
    /// # Errors
    /// None in practice: the usual names are good ones.
    pub fn migration(database: D) -> Result<Migration<D>, StoreError> {
        let names = Names::default_for(database.dialect())?;
        Ok(Self::migration_as(database, names))
    }

    /// The same under other names.
    pub fn migration_as(database: D, names: Names) -> Migration<D> {
        Migration::of(SchemaSet::INBOX, database, names)
    }

    /// Opens the inbox of this database under its usual names.
    ///
    /// # Errors
    /// `Schema` if it is not there, or is of a version that this program does not speak.
    pub async fn open(database: D) -> Result<Self, StoreError> {
        let names = Names::default_for(database.dialect())?;
        Self::open_as(database, names).await
    }

    /// Opens the inbox of this database under other names.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_as(database: D, names: Names) -> Result<Self, StoreError> {
        let templates = Templates { dialect: database.dialect(), names };
        check_schema(&database, &templates, &SchemaSet::INBOX).await?;
        let aging = |table, key, since| Aging::new(&database, &templates.names, table, key, since);
        let seen = aging("inbox_seen", &["consumer", "event_id"], "seen_at")?;
        let order = aging("inbox_order", &["consumer", "source", "key"], "moved_at")?;
        Ok(Self { database, templates, seen, order })
    }

    async fn read(&self, op: &'static str, statement: &Statement) -> Result<Vec<RowReader>, StoreError> {
        let subject = self.templates.names.subject();
        let patience = self.database.time_to_try();
        let rows = retry(op, &subject, patience, || self.database.query(op, statement)).await?;
        Ok(rows.into_iter().map(RowReader::new).collect())
    }

    /// From one consumer's name to the next: DISTINCT would read every row.
    async fn next_consumer(&self, after: &str) -> Result<Option<String>, StoreError> {
        let statement =
            self.templates.fill(include_str!("next_consumer.sql"), &[("after", Arg::from(after))])?;
        match self.read("inspect", &statement).await?.pop() {
            Some(mut row) => row.optional_text("consumer"),
            None => Ok(None),
        }
    }
}

#[async_trait]
impl<D: SqlDatabase> Inspect for SqlInbox<D> {
    async fn stats(&self) -> Result<InboxStats, StoreError> {
        self.count_consumers().await
    }

    async fn purge(&self, older_than: std::time::Duration, batch: u32) -> Result<u64, StoreError> {
        self.purge_old(older_than, batch).await
    }
}
