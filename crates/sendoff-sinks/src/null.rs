//! Nowhere.

use async_trait::async_trait;
use sendoff::outbox::Claimed;
use sendoff::{Capabilities, Delivery, Sink};

/// Takes every event and keeps none: for measuring what the relay itself costs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Null;

#[async_trait]
impl Sink for Null {
    fn capabilities(&self) -> Capabilities {
        Capabilities { events: 10_000, bytes: usize::MAX, keeps_order: true, dedupes_for: None }
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        vec![Delivery::Delivered; events.len()]
    }
}
