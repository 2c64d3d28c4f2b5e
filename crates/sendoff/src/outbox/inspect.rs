//! The operator's view: what is late, stuck or dead, why, and how to mend it.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;

use super::scope::Scope;
use super::store::{Failure, Lane, Reason, WorkerId};
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::event::{Attempts, Event, EventId};

/// No query counts further than this: a backlog of millions costs no more to look at than one of thousands.
pub const COUNT_MAX: u64 = 100_000;

/// Where an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventState {
    /// Written; no worker has its lane, or it is to be delivered later.
    Unprocessed,
    /// A worker has its lane: it is in flight, or will be when its turn comes.
    Processing,
    /// It failed and waits for its retry, or waits behind one that did, or for an operator.
    Failed,
    /// The worker that had its lane is lost, and no other has it yet.
    Abandoned,
    /// It will not be tried again by itself.
    Dead,
    /// Delivered, and kept as history.
    Published,
}

impl EventState {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Unprocessed, Self::Processing, Self::Failed, Self::Abandoned, Self::Dead, Self::Published];

    /// The state in a word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unprocessed => "unprocessed",
            Self::Processing => "processing",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
            Self::Dead => "dead",
            Self::Published => "published",
        }
    }
}

impl fmt::Display for EventState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// How many events of one target stand where.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TargetCounts {
    /// Which target.
    pub target: String,
    /// By state, each counted up to [`COUNT_MAX`].
    pub unprocessed: u64,
    /// In lanes that a worker has.
    pub processing: u64,
    /// Parked after a failure.
    pub failed: u64,
    /// In lanes whose worker is lost.
    pub abandoned: u64,
    /// Dead letters.
    pub dead: u64,
    /// Kept as history.
    pub published: u64,
    /// How long ago the oldest event that is not delivered was written.
    pub oldest: Option<Duration>,
    /// An operator has paused it.
    pub paused: bool,
}

impl TargetCounts {
    /// The count of a state.
    pub fn of(&self, state: EventState) -> u64 {
        match state {
            EventState::Unprocessed => self.unprocessed,
            EventState::Processing => self.processing,
            EventState::Failed => self.failed,
            EventState::Abandoned => self.abandoned,
            EventState::Dead => self.dead,
            EventState::Published => self.published,
        }
    }
}

/// How many events stand where, target by target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Counts {
    /// In the order of their names.
    pub targets: Vec<TargetCounts>,
}

/// What to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListQuery {
    /// Of which target.
    pub target: String,
    /// In which state.
    pub state: EventState,
    /// Only above this position: the last one of the page before.
    pub after: i64,
    /// At most so many, lowest position first.
    pub limit: u32,
}

/// An event with all that is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// The event.
    pub event: Event,
    /// Where it stands.
    pub state: EventState,
    /// Why it is parked, if it is.
    pub reason: Option<Reason>,
    /// When it will be tried, if that is known.
    pub due_at: Option<Timestamp>,
    /// What went wrong last, if anything.
    pub failure: Option<Failure>,
    /// When it was parked, died or was published.
    pub since: Option<Timestamp>,
}

/// Why an event has not been delivered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Explanation {
    /// There is no such event: it was delivered and is not kept, was cancelled, or never committed.
    NoSuchEvent,
    /// It was delivered.
    Published {
        /// When, in microseconds since 1970.
        at: i64,
    },
    /// It is dead.
    Dead {
        /// Since when, in microseconds since 1970.
        since: i64,
        /// What went wrong.
        failure: Failure,
        /// How often it was tried.
        attempts: Attempts,
    },
    /// It is to be delivered later.
    NotDue {
        /// When, in microseconds since 1970.
        at: i64,
    },
    /// It failed, and its key waits with it for the retry.
    Parked {
        /// Until when, in microseconds since 1970. None: for an operator.
        until: Option<i64>,
        /// What went wrong.
        failure: Option<Failure>,
        /// How often it was tried.
        attempts: Attempts,
    },
    /// An earlier event of its key goes first.
    Behind {
        /// Which one.
        event: EventId,
        /// Its position.
        position: i64,
    },
    /// An operator has paused its target.
    TargetPaused,
    /// No worker has its lane, and none is registered for its target.
    NoWorker,
    /// No worker has its lane yet; one will take it.
    Unleased {
        /// The lane.
        lane: Lane,
    },
    /// Nobody has its lane, and nobody will take it: the workers that are there were started for other lanes.
    Uncovered {
        /// The lane.
        lane: Lane,
    },
    /// A worker has its lane: it is in flight, or so many events of the lane go first.
    Leased {
        /// The lane.
        lane: Lane,
        /// Who has it.
        worker: WorkerId,
        /// By which name.
        name: String,
        /// Until when, in microseconds since 1970.
        until: i64,
        /// Events of its lane before it, counted up to [`COUNT_MAX`].
        before: u64,
    },
    /// A worker has its lane, and the sink that it delivers to is down. No attempt is spent by that.
    SinkDown {
        /// The lane.
        lane: Lane,
        /// Who has it.
        worker: WorkerId,
        /// By which name.
        name: String,
        /// Since when, and what the sink said.
        down: SinkDown,
    },
    /// The worker that had its lane is lost; another takes it over.
    Abandoned {
        /// The lane.
        lane: Lane,
        /// Who had it.
        worker: WorkerId,
        /// Its lease ended then, in microseconds since 1970.
        since: i64,
    },
}

/// A sink that is down, as the worker that delivers to it has noted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SinkDown {
    /// Since when, in microseconds since 1970.
    pub since: i64,
    /// What it said.
    pub error: String,
}

/// A lane and its owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaneInfo {
    /// Which one.
    pub lane: Lane,
    /// Who has it.
    pub owner: Option<WorkerId>,
    /// By which name.
    pub name: Option<String>,
    /// Until when, in microseconds since 1970.
    pub lease_until: Option<i64>,
    /// Whether that has passed.
    pub expired: bool,
    /// How often it was leased.
    pub epoch: i64,
    /// Nothing is at or below this position.
    pub floor: i64,
    /// Owners lost in a row.
    pub crashes: u32,
    /// A worker is there that may have it.
    pub covered: bool,
}

/// A worker that is registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WorkerInfo {
    /// Who it is.
    pub worker: WorkerId,
    /// By which name; several may have the same.
    pub name: String,
    /// Whose events it delivers.
    pub target: String,
    /// Since when, in microseconds since 1970.
    pub started_at: i64,
    /// It is taken to be there until then, in microseconds since 1970.
    pub lease_until: i64,
    /// Whether that has passed.
    pub expired: bool,
    /// So many lanes are its own.
    pub lanes: u64,
    /// Its sink is down.
    pub sink_down: Option<SinkDown>,
    /// Which lanes it may have, and beside whom.
    #[serde(flatten)]
    pub scope: Scope,
}

/// A parked key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KeyInfo {
    /// Its lane.
    pub lane: Lane,
    /// The key; none: an event without one.
    pub key: Option<String>,
    /// The position of the event it waits for.
    pub position: i64,
    /// Why.
    pub reason: Reason,
    /// Until when, in microseconds since 1970. None: for an operator.
    pub due_at: Option<i64>,
    /// Events that wait behind it, counted up to [`COUNT_MAX`].
    pub behind: u64,
    /// What went wrong.
    pub failure: Option<Failure>,
}

/// Which events an operation is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// One event.
    Event(EventId),
    /// All of a key.
    Key {
        /// Of which target.
        target: String,
        /// The key.
        key: String,
    },
    /// All of a target.
    Target(String),
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(id) => write!(f, "event {id}"),
            Self::Key { target, key } => write!(f, "key {} of target {target}", key.escape_debug()),
            Self::Target(target) => write!(f, "target {target}"),
        }
    }
}

/// Dead and parked events that are to be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redrive {
    /// Which ones.
    pub selection: Selection,
    /// At most so many, lowest position first; the rest is for the next call.
    pub limit: u32,
    /// Only says how many there are.
    pub dry_run: bool,
    /// Who asks: kept in the record of operations.
    pub by: String,
}

/// What a redrive did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Redriven {
    /// Dead letters that came back.
    pub dead: u64,
    /// Parked events that are due now.
    pub parked: u64,
}

/// Dead events that are to be deleted for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discard {
    /// Which ones.
    pub selection: Selection,
    /// At most so many, lowest position first; the rest is for the next call.
    pub limit: u32,
    /// Only says how many there are.
    pub dry_run: bool,
    /// Who asks: kept in the record of operations.
    pub by: String,
}

/// What to delete when it is old.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Purge {
    /// History of a target that is older than this.
    Published {
        /// Of which target.
        target: String,
        /// Older than so long.
        older_than: Duration,
    },
    /// Dead letters of a target that are older than this.
    Dead {
        /// Of which target.
        target: String,
        /// Older than so long.
        older_than: Duration,
    },
}

/// What became of a cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "cancelled", rename_all = "snake_case")]
pub enum Cancelled {
    /// It is gone, and was not in flight.
    Yes,
    /// There is no such event, or it is dead or delivered.
    NoSuchEvent,
    /// It stays: a worker has its lane and may be publishing it.
    MayBeInFlight {
        /// Who has it.
        worker: WorkerId,
    },
}

/// What an operator can ask and do. No query reads more than a bounded number of rows.
#[async_trait]
pub trait Inspect: fmt::Debug + Send + Sync {
    /// Events are claimed by lanes, and workers are registered. Not so for rows of a host's own table: then there are none of either.
    fn has_lanes(&self) -> bool {
        true
    }

    /// Whether the store answers.
    ///
    /// # Errors
    /// As the store's.
    async fn ping(&self) -> Result<(), StoreError> {
        self.workers().await.map(drop)
    }

    /// How many events stand where.
    async fn counts(&self) -> Result<Counts, StoreError>;

    /// Events of a state, lowest position first.
    async fn list(&self, query: &ListQuery) -> Result<Vec<Listed>, StoreError>;

    /// One event, wherever it is.
    async fn get(&self, id: EventId) -> Result<Option<Listed>, StoreError>;

    /// Why an event has not been delivered.
    async fn explain(&self, id: EventId) -> Result<Explanation, StoreError>;

    /// The lanes of a target.
    async fn lanes(&self, target: &str) -> Result<Vec<LaneInfo>, StoreError>;

    /// The workers of all targets, by target and name; those that were lost stay for a while.
    async fn workers(&self) -> Result<Vec<WorkerInfo>, StoreError>;

    /// Parked keys of a target, by the position of the event they wait for.
    async fn parked_keys(&self, target: &str, limit: u32) -> Result<Vec<KeyInfo>, StoreError>;

    /// Brings dead and parked events back, each before the later ones of its key. Their attempts begin anew.
    async fn redrive(&self, redrive: &Redrive) -> Result<Redriven, StoreError>;

    /// Takes an event out that is not in flight.
    async fn cancel(&self, id: EventId, by: &str) -> Result<Cancelled, StoreError>;

    /// Deletes dead events for good, whatever their age; how many. A key that one of them diverted goes on.
    async fn discard(&self, discard: &Discard) -> Result<u64, StoreError>;

    /// Deletes for good what is old, up to `batch` rows: call it until it answers with less.
    async fn purge(&self, purge: &Purge, batch: u32) -> Result<u64, StoreError>;

    /// Stops the workers of a target from claiming, or lets them go on.
    async fn set_paused(&self, target: &str, paused: bool, by: &str) -> Result<(), StoreError>;
}
