//! The operator's view of an inbox.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use crate::error::StoreError;

/// No more consumers than this are listed: they are programs, not made up by events.
pub const CONSUMERS_MAX: usize = 1_000;

/// What is remembered of one consumer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ConsumerStats {
    /// Its name.
    pub consumer: String,
    /// Events that it has handled, counted up to [`COUNT_MAX`](crate::outbox::COUNT_MAX).
    pub seen: u64,
    /// Keys that it follows, counted up to the same.
    pub keys: u64,
    /// How long ago it handled the oldest of these events.
    pub oldest: Option<Duration>,
    /// How long ago it handled the newest.
    pub newest: Option<Duration>,
}

/// What an inbox remembers.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct InboxStats {
    /// In the order of their names, no more than [`CONSUMERS_MAX`].
    pub consumers: Vec<ConsumerStats>,
    /// There are more consumers.
    pub has_more: bool,
    /// What its tables and indexes take on the disk, as far as the database knows; SQLite does not.
    pub bytes: Option<u64>,
}

/// An inbox, for who looks after it.
#[async_trait]
pub trait Inspect: Send + Sync {
    /// What it remembers, consumer by consumer. Bounded, whatever is in it.
    ///
    /// # Errors
    /// As the store's.
    async fn stats(&self) -> Result<InboxStats, StoreError>;

    /// Forgets what was handled, and keys that were last heard of, longer ago than this by the database's clock, no more than `batch` rows of it. How many it was: call it again until
    /// that is nothing.
    ///
    /// A copy of an event that is forgotten is `First` again: `older_than` must be longer than any copy may take to arrive.
    ///
    /// # Errors
    /// As the store's.
    async fn purge(&self, older_than: Duration, batch: u32) -> Result<u64, StoreError>;
}
