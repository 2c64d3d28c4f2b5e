//! How a worker works, and what it is told.

use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::error::StoreError;
use crate::event::{DEFAULT_TARGET, Event};
use crate::outbox::{Cause, Failure, LaneSet, Scope, Token};

/// What becomes of an event that nobody will try again by himself, and of its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnExhausted {
    /// The event and its key wait for an operator. Nothing is skipped, and that key stands still.
    Block,
    /// The event becomes a dead letter; its key goes on.
    #[default]
    Skip,
    /// The event becomes a dead letter, and so does what its key holds and will hold, until it is redriven.
    Divert,
}

/// How a worker works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerConfig {
    /// What people call it. Need not be unique.
    pub name: String,
    /// Whose events it delivers.
    pub target: String,
    /// How long a lease lasts: the longest that a lane stands still if its worker is lost and nobody can know.
    pub lease: Duration,
    /// At most so many events are handed out and not settled.
    pub window: u32,
    /// At most so many payload bytes are read at a time.
    pub bytes: u64,
    /// At most so many events of one key are handed out together.
    pub run: u32,
    /// So many crashes with the same event in hand, and it is given up.
    pub crashes_max: u32,
    /// The pause before an event that crashed its worker is tried again; at least the time that a publish may take, since
    /// its last one may be under way still.
    pub crash_pause: Duration,
    /// What becomes of events that are given up.
    pub on_exhausted: OnExhausted,
    /// It has none but these lanes, and shares them with the others that may have them.
    pub lanes: LaneSet,
    /// Of the exclusive workers of a target that have the same `lanes`, one works; the others stand by. One takes over at once when it stops, and when
    /// its leases end, or it is provably gone, if it is lost.
    pub exclusive: bool,
    /// What the workers of one relay have in common: two of them in one range are not two relays.
    pub relay: Option<Uuid>,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self {
            name: "worker".to_owned(),
            target: DEFAULT_TARGET.to_owned(),
            lease: Duration::from_secs(30),
            window: 2_000,
            bytes: 16 * 1024 * 1024,
            run: 100,
            crashes_max: 5,
            crash_pause: Duration::from_secs(10),
            on_exhausted: OnExhausted::default(),
            lanes: LaneSet::ALL,
            exclusive: false,
            relay: None,
        }
    }
}

/// Shorter leases could not be renewed in time.
const LEASE_MIN: Duration = Duration::from_millis(100);

impl WorkerConfig {
    /// Checks it.
    ///
    /// # Errors
    /// `Rejected`, naming the part.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let refuse = |detail: &str| Err(StoreError::rejected("start worker", &self.name, detail.to_owned()));
        if self.lease < LEASE_MIN {
            return refuse("the lease is shorter than 100 ms");
        }
        if self.window == 0 || self.run == 0 || self.bytes == 0 || self.crashes_max == 0 {
            return refuse("window, run, bytes and crashes_max must be at least 1");
        }
        if self.target.is_empty() || self.target.len() > crate::event::TARGET_BYTES_MAX {
            return refuse("the target's name must have 1 to 63 bytes");
        }
        if self.lanes.is_empty() {
            return refuse("it may have no lane: give it some, or leave `lanes` as it is for all");
        }
        Ok(())
    }

    pub(super) fn scope(&self) -> Scope {
        Scope { lanes: self.lanes, exclusive: self.exclusive, relay: self.relay }
    }

    /// How often the worker looks whether others came or went.
    pub(crate) fn tick(&self) -> Duration {
        (self.lease / 6).min(Duration::from_millis(500))
    }

    /// So long before its lease ends a worker stops handing out.
    pub(crate) fn margin(&self) -> Duration {
        self.lease / 10
    }
}

/// An event that was handed out: nobody else has it while its lease lasts.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    /// The event.
    pub event: Event,
    /// The lease it is handed out under.
    pub token: Token,
    /// By this worker's own monotonic clock: do not begin to publish after it.
    pub deadline: Instant,
}

impl Claimed {
    /// What to settle it with.
    pub fn receipt(&self) -> Receipt {
        Receipt { token: self.token, position: self.event.position }
    }
}

/// Which event was handed out, and under which lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Receipt {
    /// The lease.
    pub token: Token,
    /// The event's position.
    pub position: i64,
}

/// What was decided about an event that was handed out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The sink has it.
    Published,
    /// It is to be tried again; until then its key waits.
    Retry {
        /// After so long.
        after: Duration,
        /// What went wrong.
        failure: Failure,
    },
    /// It will not be tried again by itself: [`OnExhausted`] says what becomes of it.
    GiveUp {
        /// What went wrong.
        failure: Failure,
    },
    /// It was not tried, or the target is down: as if it had not been handed out. Spends no attempt.
    Release,
}

impl Outcome {
    /// A retry after a transient failure.
    pub fn retry(after: Duration, error: impl AsRef<str>) -> Self {
        Self::Retry { after, failure: Failure::new(Cause::Transient, error) }
    }

    /// Given up, since the sink will never take it.
    pub fn rejected(error: impl AsRef<str>) -> Self {
        Self::GiveUp { failure: Failure::new(Cause::Rejected, error) }
    }
}

/// What became of settled events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Written.
    pub applied: usize,
    /// Refused: the lane had gone to another worker. Nothing was changed.
    pub stale: usize,
    /// Not there any more: cancelled, or settled before.
    pub missing: usize,
}

/// What a worker has seen since it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Events handed out.
    pub claimed: u64,
    /// Settlements written.
    pub applied: u64,
    /// Settlements refused for a stale token.
    pub stale: u64,
    /// Settlements of events that were gone.
    pub missing: u64,
    /// Lanes leased.
    pub taken: u64,
    /// Lanes lost to others before they were given back.
    pub lost: u64,
    /// Lanes given back.
    pub given: u64,
    /// Events written down before they were handed out, since their lane lost its owners.
    pub named: u64,
}
