//! What is kept, by consumer.

use std::time::Duration;

use super::{Arg, SqlDatabase, SqlInbox};
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::inbox::{CONSUMERS_MAX, ConsumerStats, InboxStats};
use crate::outbox::COUNT_MAX;
use crate::stores::sql::Dialect;

impl<D: SqlDatabase> SqlInbox<D> {
    pub(super) async fn count_consumers(&self) -> Result<InboxStats, StoreError> {
        let mut stats = InboxStats { bytes: self.bytes().await?, ..InboxStats::default() };
        let mut after = String::new();
        while let Some(consumer) = self.next_consumer(&after).await? {
            if stats.consumers.len() == CONSUMERS_MAX {
                stats.has_more = true;
                break;
            }
            after.clone_from(&consumer);
            stats.consumers.push(self.count_consumer(consumer).await?);
        }
        Ok(stats)
    }

    async fn count_consumer(&self, consumer: String) -> Result<ConsumerStats, StoreError> {
        let limit = i64::try_from(COUNT_MAX).unwrap_or(i64::MAX);
        let args = [("consumer", Arg::from(consumer.as_str())), ("limit", Arg::from(limit))];
        let statement = self.templates.fill(include_str!("stats.sql"), &args)?;
        let mut stats = ConsumerStats { consumer, ..ConsumerStats::default() };
        if let Some(mut row) = self.read("inspect", &statement).await?.pop() {
            stats.seen = row.int("seen")?.unsigned_abs();
            stats.keys = row.int("keys_followed")?.unsigned_abs();
            let oldest = row.optional_moment("oldest")?;
            let newest = row.optional_moment("newest")?;
            let now = row.moment("now")?;
            stats.oldest = oldest.map(|at| ago(now, at));
            stats.newest = newest.map(|at| ago(now, at));
        }
        Ok(stats)
    }

    /// What the tables take on the disk, with their indexes, where the database can say so without reading them.
    async fn bytes(&self) -> Result<Option<u64>, StoreError> {
        let (template, tables) = match self.templates.dialect {
            Dialect::Postgres => (include_str!("../../postgres/inbox/size.sql"), self.quoted_tables()?),
            Dialect::Mysql => (include_str!("../../mysql/inbox/size.sql"), self.plain_tables()?),
            Dialect::Sqlite => return Ok(None),
        };
        let [seen, order] = tables;
        let args = [("seen", Arg::from(seen.as_str())), ("order", Arg::from(order.as_str()))];
        let statement = self.templates.fill(template, &args)?;
        let Some(mut row) = self.read("inspect", &statement).await?.pop() else { return Ok(None) };
        Ok(row.optional_int("bytes")?.map(i64::unsigned_abs))
    }

    fn quoted_tables(&self) -> Result<[String; 2], StoreError> {
        let quoted = |name| self.templates.names.quoted(self.templates.dialect, name);
        Ok([quoted("inbox_seen")?, quoted("inbox_order")?])
    }

    fn plain_tables(&self) -> Result<[String; 2], StoreError> {
        let plain = |name| Ok::<_, StoreError>(self.templates.names.table(name)?.name().to_string());
        Ok([plain("inbox_seen")?, plain("inbox_order")?])
    }
}

fn ago(now: Timestamp, at: Timestamp) -> Duration {
    let micros = now.as_micros().saturating_sub(at.as_micros());
    Duration::from_micros(u64::try_from(micros).unwrap_or_default())
}
