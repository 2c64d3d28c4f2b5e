//! Forgetting what is old, a batch at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Arg, RowReader, SqlDatabase, SqlInbox};
use crate::error::StoreError;
use crate::event::EventId;
use crate::stores::sql::{Bind, KEYS_PER_STATEMENT, SqlTransaction, retry};

/// Nothing is older, and every database can count back so far.
const OLDEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

impl<D: SqlDatabase> SqlInbox<D> {
    /// Consumer by consumer, until a batch is full.
    pub(super) async fn purge_old(&self, older_than: Duration, batch: u32) -> Result<u64, StoreError> {
        let subject = self.templates.names.subject();
        let micros = i64::try_from(older_than.min(OLDEST).as_micros()).unwrap_or(i64::MAX);
        let mut purged = 0;
        let mut consumer = String::new();
        while purged < u64::from(batch) {
            let Some(next) = self.next_consumer(&consumer).await? else { break };
            consumer = next;
            for what in [What::Seen, What::Order] {
                let left = u32::try_from(u64::from(batch).saturating_sub(purged)).unwrap_or(batch);
                purged += retry("purge", &subject, self.database.time_to_try(), || {
                    self.purge_once(what, &consumer, Arg::Now(-micros), left)
                })
                .await?;
            }
        }
        Ok(purged)
    }

    async fn purge_once(
        &self,
        what: What,
        consumer: &str,
        before: Arg,
        limit: u32,
    ) -> Result<u64, StoreError> {
        if limit == 0 {
            return Ok(0);
        }
        let args =
            [("consumer", Arg::from(consumer)), ("before", before.clone()), ("limit", Arg::from(limit))];
        let old = self.templates.fill(what.find(), &args)?;
        let mut transaction = self.database.begin("purge").await?;
        let mut rows = Vec::new();
        for row in transaction.query(&old).await? {
            rows.push(RowReader::new(row));
        }
        let purged = match what {
            What::Seen => self.delete_seen(transaction.as_mut(), consumer, &before, rows).await?,
            What::Order => self.delete_order(transaction.as_mut(), consumer, &before, rows).await?,
        };
        transaction.commit().await?;
        Ok(purged)
    }

    async fn delete_seen(
        &self,
        transaction: &mut dyn SqlTransaction,
        consumer: &str,
        before: &Arg,
        rows: Vec<RowReader>,
    ) -> Result<u64, StoreError> {
        let mut ids = Vec::with_capacity(rows.len());
        for mut row in rows {
            ids.push(EventId(row.uuid("event_id")?));
        }
        // Whoever purges beside this one meets the rows in the same order.
        ids.sort_unstable();
        let mut purged = 0;
        for chunk in ids.chunks(KEYS_PER_STATEMENT) {
            let ids = chunk.iter().map(|id| self.templates.uuid(id.0)).collect();
            let args =
                [("consumer", Arg::from(consumer)), ("ids", Arg::List(ids)), ("before", before.clone())];
            purged +=
                transaction.execute(&self.templates.fill(include_str!("delete_seen.sql"), &args)?).await?;
        }
        Ok(purged)
    }

    async fn delete_order(
        &self,
        transaction: &mut dyn SqlTransaction,
        consumer: &str,
        before: &Arg,
        rows: Vec<RowReader>,
    ) -> Result<u64, StoreError> {
        let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for mut row in rows {
            let source = row.text("source")?;
            keys.entry(source).or_default().push(row.text("key")?);
        }
        let mut purged = 0;
        for (source, mut keys) in keys {
            keys.sort_unstable();
            for chunk in keys.chunks(KEYS_PER_STATEMENT) {
                let args = [
                    ("consumer", Arg::from(consumer)),
                    ("source", Arg::from(source.as_str())),
                    ("keys", Arg::List(chunk.iter().cloned().map(Bind::Text).collect())),
                    ("before", before.clone()),
                ];
                let delete = self.templates.fill(include_str!("delete_order.sql"), &args)?;
                purged += transaction.execute(&delete).await?;
            }
        }
        Ok(purged)
    }
}

#[derive(Debug, Clone, Copy)]
enum What {
    Seen,
    Order,
}

impl What {
    fn find(self) -> &'static str {
        match self {
            Self::Seen => include_str!("old_seen.sql"),
            Self::Order => include_str!("old_order.sql"),
        }
    }
}
