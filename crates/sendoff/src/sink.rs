//! Where events go: the contract between the relay and a broker.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use crate::outbox::Claimed;

/// What a sink can do. The relay arranges its calls by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// At most so many events in one call.
    pub events: usize,
    /// At most so many payload bytes in one call, unless a single event has more.
    pub bytes: usize,
    /// Within one call, events of one key are delivered in their order, and none of them after one that was not. Without it a call never has two
    /// events of one key.
    pub keeps_order: bool,
    /// A second delivery of the same event id within this time is dropped by the broker.
    pub dedupes_for: Option<Duration>,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self { events: 500, bytes: 4 * 1024 * 1024, keeps_order: false, dedupes_for: None }
    }
}

/// What became of an event that was to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The broker has it, and has said so.
    Delivered,
    /// Not this time: it counts as an attempt, and its key waits.
    Retry {
        /// What went wrong.
        error: String,
        /// Not before this time is over, if the broker said so.
        after: Option<Duration>,
    },
    /// Never: this event is not one that the broker takes.
    Reject {
        /// Why.
        error: String,
    },
    /// An earlier event of its key was not delivered in this call: this one was held back.
    Untried,
    /// The broker cannot be reached: nothing to do with this event, which is not charged for it.
    Down {
        /// What went wrong.
        error: String,
    },
}

impl Delivery {
    /// A retry in its usual time.
    pub fn retry(error: impl Into<String>) -> Self {
        Self::Retry { error: error.into(), after: None }
    }

    /// A rejection.
    pub fn reject(error: impl Into<String>) -> Self {
        Self::Reject { error: error.into() }
    }

    /// The broker is not there.
    pub fn down(error: impl Into<String>) -> Self {
        Self::Down { error: error.into() }
    }
}

/// A sink that cannot work as it is configured, or is not there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sink}: {detail}")]
pub struct SinkError {
    /// Which one.
    pub sink: String,
    /// What is wrong, and what to do.
    pub detail: String,
    /// It cannot be reached, or cannot answer now: it may come back by itself. Otherwise somebody has to mend something first.
    pub is_away: bool,
}

impl SinkError {
    /// A sink that cannot work as it is configured.
    pub fn new(sink: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { sink: sink.into(), detail: detail.into(), is_away: false }
    }

    /// A sink that is not there now, and may come back by itself.
    pub fn away(sink: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { is_away: true, ..Self::new(sink, detail) }
    }
}

/// Where events go.
///
/// # Contract
/// 1. **Delivered means acknowledged.** By the broker itself, and durably if it can.
/// 2. **An answer for each event, in their order.** A shorter answer: the rest was not tried. An event that may have arrived or not is a
///    [`Delivery::Retry`], or [`Delivery::Down`] where it was the connection that was lost: either way it is sent again.
/// 3. **Droppable.** A call that is dropped half-way may have delivered any of its events; the next call works all the same.
/// 4. **The event id goes along**, where the broker or the consumer can tell a second delivery by it.
#[async_trait]
pub trait Sink: fmt::Debug + Send + Sync {
    /// What it can do.
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    /// Publishes events.
    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery>;

    /// Whether it can be reached. Asked before anything is sent to a sink that was down.
    ///
    /// # Errors
    /// Why it cannot: [`SinkError::away`] for what may pass by itself, [`SinkError::new`] for what somebody has to mend, such as a wrong password.
    async fn check(&self) -> Result<(), SinkError> {
        Ok(())
    }

    /// Sends out what it holds back, and lets go of its connections.
    ///
    /// # Errors
    /// What could not be sent. Nothing is lost with it: it was not reported as delivered.
    async fn close(&self) -> Result<(), SinkError> {
        Ok(())
    }
}
