//! Whether a worker gets on.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// When a worker last got on with anything: asked for events, sent some, settled some, or waited for a moment.
#[derive(Debug)]
pub(crate) struct Pulse(Mutex<Instant>);

impl Pulse {
    pub(crate) fn new(now: Instant) -> Self {
        Self(Mutex::new(now))
    }

    pub(crate) fn beat(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    pub(crate) fn age(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).elapsed()
    }
}
