//! What the store suite needs of a store.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::error::StoreError;
use crate::event::{EventId, NewEvent};
use crate::outbox::{Inspect, Store};

/// What the store suite needs of a store. Each case gets a harness of its own, with an empty outbox that
/// takes events within the default [`Limits`](crate::Limits).
pub trait StoreHarness: Send + Sync + 'static {
    /// How the host writes.
    type Transaction: HostTransaction;

    /// The outbox as workers see it.
    fn store(&self) -> Arc<dyn Store>;

    /// The outbox as operators see it.
    fn inspect(&self) -> Arc<dyn Inspect>;

    /// The same outbox with published events kept as history.
    fn store_with_history(&self) -> Arc<dyn Store>;

    /// A transaction of the host.
    fn begin(&self) -> impl Future<Output = Self::Transaction> + Send;

    /// Lets so much time pass by the store's clock: a store with a clock of its own moves it, others wait.
    fn pass(&self, time: Duration) -> impl Future<Output = ()> + Send;

    /// Two of the host's transactions may be open and have written at the same time. False for SQLite: its second writer waits for
    /// the first.
    fn writes_side_by_side(&self) -> bool {
        true
    }
}

/// A transaction of the host, with its events in it. Dropped, it is rolled back.
pub trait HostTransaction: Send + 'static {
    /// Writes events.
    fn enqueue(
        &mut self,
        events: &[NewEvent],
    ) -> impl Future<Output = Result<Vec<EventId>, StoreError>> + Send;

    /// Commits; an error means that nothing was written.
    fn commit(self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Rolls back.
    fn rollback(self) -> impl Future<Output = ()> + Send;
}
