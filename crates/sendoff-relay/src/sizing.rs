//! How many events to claim, from how long they take to publish.

use std::time::Duration;

use crate::target::Loop;

/// The part of a lease in which a claim is to be published.
const LEASE_PART: u32 = 4;

/// The weight of the latest call, in parts of 8.
const WEIGHT: u64 = 1;

impl Loop {
    /// So many that they are settled well within the lease, at the pace of the last calls.
    pub(crate) fn pace_limit(&self, batch: usize) -> usize {
        let nanos = self.nanos_per_event.get();
        let config = &self.target.config;
        let time = (config.lease / LEASE_PART).as_nanos();
        let fits = time.saturating_mul(config.concurrency as u128) / u128::from(nanos.max(1));
        batch.min(usize::try_from(fits).unwrap_or(usize::MAX)).max(1)
    }

    /// A call of the sink has ended.
    pub(crate) fn published(&self, events: usize, took: Duration) {
        let each = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX) / (events.max(1) as u64);
        let before = self.nanos_per_event.get();
        let now = if before == 0 { each } else { before - before * WEIGHT / 8 + each / 8 * WEIGHT };
        self.nanos_per_event.set(now);
    }
}
