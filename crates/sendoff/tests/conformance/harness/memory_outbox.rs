//! An outbox in memory.

use std::sync::Arc;
use std::time::Duration;

use sendoff::outbox::{Inspect, Store};
use sendoff::stores::memory::{MemoryOutbox, MemoryTransaction};
use sendoff::testkit::{HostTransaction, StoreHarness};
use sendoff::{EventId, NewEvent, StoreError};

pub(crate) struct Outbox(MemoryOutbox);

pub(crate) async fn open() -> Outbox {
    Outbox(MemoryOutbox::new().unwrap())
}

impl StoreHarness for Outbox {
    type Transaction = Transaction;

    fn store(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    fn inspect(&self) -> Arc<dyn Inspect> {
        Arc::new(self.0.clone())
    }

    fn store_with_history(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone().keep_published(true))
    }

    async fn begin(&self) -> Transaction {
        Transaction(self.0.begin())
    }

    async fn pass(&self, time: Duration) {
        self.0.advance(time);
    }
}

pub(crate) struct Transaction(MemoryTransaction);

impl HostTransaction for Transaction {
    async fn enqueue(&mut self, events: &[NewEvent]) -> Result<Vec<EventId>, StoreError> {
        self.0.enqueue(events)
    }

    async fn commit(self) -> Result<(), StoreError> {
        self.0.commit()
    }

    async fn rollback(self) {
        drop(self.0);
    }
}
