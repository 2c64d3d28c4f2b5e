//! What a target's workers have done: counters that every stage adds to.

use std::sync::atomic::{AtomicU64, Ordering};

use serde::Serialize;

/// Counters of one target, for all its workers of this process.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) claimed: Counter,
    pub(crate) published: Counter,
    pub(crate) retried: Counter,
    pub(crate) given_up: Counter,
    pub(crate) released: Counter,
    pub(crate) late: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) down: Counter,
    pub(crate) stale: Counter,
    pub(crate) stale_deliveries: Counter,
    pub(crate) missing: Counter,
    pub(crate) unanswered: Counter,
    pub(crate) store_errors: Counter,
    pub(crate) in_flight: Counter,
    pub(crate) bytes_in_flight: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub(crate) fn sub(&self, number: u64) {
        self.0.fetch_sub(number, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, number: u64) {
        self.0.store(number, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What a target's workers have done since the relay started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Figures {
    /// Events claimed, those that were given back included.
    pub claimed: u64,
    /// Events that the sink has, and whose delivery is written down.
    pub published: u64,
    /// Attempts that failed and will be repeated.
    pub retried: u64,
    /// Events given up: rejected, or out of attempts.
    pub given_up: u64,
    /// Events given back untried: behind a failure of their key, or while the sink was down.
    pub released: u64,
    /// Of those, the ones whose lease was about to end.
    pub late: u64,
    /// Calls of the sink that took too long.
    pub timeouts: u64,
    /// Times that the sink was found down.
    pub down: u64,
    /// Settlements refused, since the lane had gone to another worker.
    pub stale: u64,
    /// Of those, deliveries: the sink has the event, and another worker delivers it again.
    pub stale_deliveries: u64,
    /// Settlements of events that were gone: cancelled, or settled by a try whose reply was lost.
    pub missing: u64,
    /// Events that a call of the sink gave no answer for.
    pub unanswered: u64,
    /// Calls of the store that failed and were repeated.
    pub store_errors: u64,
    /// Events claimed and not settled.
    pub in_flight: u64,
    /// Their payloads' bytes.
    pub bytes_in_flight: u64,
}

impl Counters {
    pub(crate) fn figures(&self) -> Figures {
        Figures {
            claimed: self.claimed.get(),
            published: self.published.get(),
            retried: self.retried.get(),
            given_up: self.given_up.get(),
            released: self.released.get(),
            late: self.late.get(),
            timeouts: self.timeouts.get(),
            down: self.down.get(),
            stale: self.stale.get(),
            stale_deliveries: self.stale_deliveries.get(),
            missing: self.missing.get(),
            unanswered: self.unanswered.get(),
            store_errors: self.store_errors.get(),
            in_flight: self.in_flight.get(),
            bytes_in_flight: self.bytes_in_flight.get(),
        }
    }
}
