//! What a relay needs: where claims come from, and one claiming loop. Lanes are one way to claim, rows of a host's own table another, and
//! a relay cannot tell them apart.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;

use super::store::{Lane, Store, Token, WorkerId};
use super::worker::{Claimed, Outcome, Receipt, Stats, Summary, Worker, WorkerConfig};
use crate::error::StoreError;

/// Where claims come from.
#[async_trait]
pub trait Source: fmt::Debug + Send + Sync {
    /// Starts one claiming loop.
    ///
    /// # Errors
    /// As the store's, or `Rejected` for a configuration that cannot work.
    async fn start(&self, config: WorkerConfig) -> Result<Box<dyn Engine>, StoreError>;

    /// The highest position that is known of: if it has moved, there may be something to claim. None: there is no cheaper way to know than to claim.
    ///
    /// # Errors
    /// As the store's. Nothing depends on it.
    async fn newest(&self) -> Result<Option<i64>, StoreError> {
        Ok(None)
    }
}

/// One claiming loop: hands out events that nobody else has, and settles what became of them.
///
/// # Contract
/// 1. **Nobody else has it** until [`deadline`](Self::deadline), which moves on as the lease is renewed.
/// 2. **Fenced.** What is settled after the claim was lost changes nothing, and is counted as stale.
/// 3. **Safe to repeat.** A settle whose answer was lost can be made again.
#[async_trait]
pub trait Engine: fmt::Debug + Send + Sync {
    /// What it is known by.
    fn id(&self) -> WorkerId;

    /// The lanes it has; none where events are not claimed by lanes.
    fn lanes(&self) -> Vec<Lane>;

    /// By this process's monotonic clock: nothing claimed under this token may be published after it. None: the claim was lost to another.
    fn deadline(&self, token: Token) -> Option<Instant>;

    /// Events handed out and not settled.
    fn in_flight(&self) -> usize;

    /// What it has seen since it started.
    fn stats(&self) -> Stats;

    /// Up to `limit` events that are due. None: there are none now, or the window is full; ask again later. To be run to its end.
    ///
    /// # Errors
    /// As the store's; then nothing was handed out.
    async fn claim(&self, limit: usize) -> Result<Vec<Claimed>, StoreError>;

    /// Says that events are published and will be settled so, before any later event of their keys: the next of these keys may be handed out.
    fn delivered(&self, receipts: &[Receipt]);

    /// Says what became of events that were handed out.
    ///
    /// # Errors
    /// As the store's. Whether it was written is then unknown: call it again with the same outcomes.
    async fn settle(&self, outcomes: &[(Receipt, Outcome)]) -> Result<Summary, StoreError>;

    /// Writes down, for people to read, that the sink is down and what it said; none: it is there again.
    ///
    /// # Errors
    /// As the store's. Nothing depends on it.
    async fn note_sink(&self, down: Option<&str>) -> Result<(), StoreError>;

    /// Hands out nothing more, waits up to `grace` for what is in flight, and gives back what it has.
    ///
    /// # Errors
    /// As the store's; then what it has goes over when its leases end.
    async fn stop(&self, grace: Duration) -> Result<Stats, StoreError>;
}

/// An outbox: claimed by lanes.
#[async_trait]
impl Source for Arc<dyn Store> {
    async fn start(&self, config: WorkerConfig) -> Result<Box<dyn Engine>, StoreError> {
        Ok(Box::new(Worker::start(Arc::clone(self), config).await?))
    }

    async fn newest(&self) -> Result<Option<i64>, StoreError> {
        Store::newest(&**self).await
    }
}

#[async_trait]
impl Engine for Worker {
    fn id(&self) -> WorkerId {
        Worker::id(self)
    }

    fn lanes(&self) -> Vec<Lane> {
        Worker::lanes(self)
    }

    fn deadline(&self, token: Token) -> Option<Instant> {
        Worker::deadline(self, token)
    }

    fn in_flight(&self) -> usize {
        Worker::in_flight(self)
    }

    fn stats(&self) -> Stats {
        Worker::stats(self)
    }

    async fn claim(&self, limit: usize) -> Result<Vec<Claimed>, StoreError> {
        Worker::claim(self, limit).await
    }

    fn delivered(&self, receipts: &[Receipt]) {
        Worker::delivered(self, receipts);
    }

    async fn settle(&self, outcomes: &[(Receipt, Outcome)]) -> Result<Summary, StoreError> {
        Worker::settle(self, outcomes).await
    }

    async fn note_sink(&self, down: Option<&str>) -> Result<(), StoreError> {
        Worker::note_sink(self, down).await
    }

    async fn stop(&self, grace: Duration) -> Result<Stats, StoreError> {
        Worker::stop(self, grace).await
    }
}
