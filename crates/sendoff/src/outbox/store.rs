//! The contract between a worker and where the outbox is kept.
//!
//! A [`Store`] knows tables and statements, and decides nothing: which lanes a worker should have, what it may hand out and what
//! becomes of an event is [`Worker`](super::Worker)'s business, once, for every store.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use uuid::Uuid;

use super::lane_set::LaneSet;
use super::scope::{Peer, Scope};
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::event::{Attempts, Event};

/// A bucket of keys, owned by one worker at a time.
pub type Lane = u16;

/// What one worker start is known by. Made anew for each: two processes under one name stay two workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct WorkerId(pub Uuid);

impl WorkerId {
    /// A new one.
    pub fn generate() -> Self {
        Self(Uuid::new_v4())
    }
}

impl fmt::Display for WorkerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.hyphenated().fmt(f)
    }
}

/// A worker as a store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// What it is known by.
    pub worker: WorkerId,
    /// What people call it. A label: nothing depends on its being unique.
    pub name: String,
    /// Whose events it delivers.
    pub target: String,
    /// How long its leases last.
    pub lease: Duration,
    /// Which lanes it may have, for the others to know.
    pub scope: Scope,
}

/// Proof of one lease of one lane. A lane that is leased again has a higher epoch, and what is settled
/// with an older one changes nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token {
    /// Who leased it.
    pub worker: WorkerId,
    /// What was leased.
    pub lane: Lane,
    /// Which lease of that lane it was.
    pub epoch: i64,
}

/// A lane that has just been leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leased {
    /// The proof.
    pub token: Token,
    /// No event at or below this position is in the lane, or ever will be.
    pub floor: i64,
    /// How many owners in a row were lost without getting past what they had in hand.
    pub crashes: u32,
    /// The one event that the last owner had in hand, if it worked carefully and was lost.
    pub named: Option<i64>,
}

/// Who else works for a target.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Census {
    /// The live workers, lowest id first. The asking one is among them unless its registration was lost.
    pub workers: Vec<Peer>,
    /// An operator has paused the target: nothing is to be handed out.
    pub paused: bool,
}

impl Census {
    /// The lanes that one of them may have.
    pub fn covered(&self) -> LaneSet {
        self.workers.iter().fold(LaneSet::NONE, |all, peer| all.with(peer.scope.lanes))
    }
}

/// What to read of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneFetch {
    /// Which one.
    pub lane: Lane,
    /// Only what is above this position.
    pub above: i64,
    /// At most so many events.
    pub limit: u32,
}

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    /// Of which target.
    pub target: String,
    /// From which lanes; those named first are served first.
    pub lanes: Vec<LaneFetch>,
    /// At most so many events in all.
    pub limit: u32,
    /// No lane goes on once it has given so many payload bytes.
    pub bytes_per_lane: u64,
}

/// Where a row was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Place {
    /// In the event table; with the row's physical address where the store has one, which saves a look-up.
    Hot(Option<RowAddress>),
    /// Among the parked.
    Parked,
}

impl Place {
    /// In the event table.
    pub fn is_hot(self) -> bool {
        matches!(self, Self::Hot(_))
    }
}

/// A row's physical address: PostgreSQL's block and offset. A hint; every use of it checks the position as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RowAddress {
    /// The page.
    pub block: u32,
    /// The row in the page.
    pub offset: u16,
}

/// How an event's key stands, as parked events of it tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Hold {
    /// Nothing of its key is parked.
    #[default]
    Free,
    /// Earlier ones are parked and due: they go first, soon.
    Draining,
    /// An earlier one waits for its retry, or for an operator.
    Held,
    /// An earlier one is dead, and its key goes the same way.
    Diverted,
}

/// An event that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Fetched {
    /// The event.
    pub event: Event,
    /// Where it was.
    pub place: Place,
    /// How its key stands.
    pub hold: Hold,
    /// It is to be delivered later: when.
    pub later: Option<Timestamp>,
    /// Why it was parked, if it was.
    pub reason: Option<Reason>,
    /// Why it cannot be read, if so.
    pub corrupt: Option<String>,
}

/// What was read of the lanes that were asked for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Page {
    /// Lane by lane as they were asked for, lowest position first.
    pub events: Vec<Fetched>,
    /// The limit was reached in this lane: nothing is known of it after its last event here, nor of the lanes named after it.
    pub ends_in: Option<Lane>,
    /// What was there when the page was measured and gone when it was read, lowest position first: its lane was read up to there all the same.
    pub gone: Vec<(Lane, i64)>,
}

impl Page {
    /// Of the first `limit` events, or as many as there are.
    pub fn new(events: Vec<Fetched>, limit: u32) -> Self {
        let mut page = Self { events, ends_in: None, gone: Vec::new() };
        page.events.truncate(limit as usize);
        if page.events.len() == limit as usize {
            page.ends_in = page.events.last().map(|row| row.event.lane);
        }
        page
    }
}

/// Parked events that may be tried.
#[derive(Debug, Clone, PartialEq)]
pub struct ParkedFetch {
    /// Each key's events stand together, in order.
    pub events: Vec<Fetched>,
    /// When the next one will be due, if any.
    pub next_due: Option<Duration>,
    /// The lanes that have one that is due, whether or not it is among the events.
    pub due: LaneSet,
}

impl ParkedFetch {
    /// Nothing is due.
    pub fn nothing(next_due: Option<Duration>) -> Self {
        Self { events: Vec::new(), next_due, due: LaneSet::NONE }
    }
}

/// Why an event is parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// It is to be delivered at a later time. Its key does not wait for it.
    Delayed,
    /// It failed, and waits for its retry.
    Retry,
    /// It waits behind an earlier event of its key.
    Behind,
    /// Its attempts ran out; its key waits for an operator.
    Blocked,
    /// It is dead, and marks that the rest of its key goes the same way.
    Diverted,
}

impl Reason {
    /// The word that stands in the table.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Delayed => "delayed",
            Self::Retry => "retry",
            Self::Behind => "behind",
            Self::Blocked => "blocked",
            Self::Diverted => "diverted",
        }
    }

    /// From the word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Delayed, Self::Retry, Self::Behind, Self::Blocked, Self::Diverted]
            .into_iter()
            .find(|reason| reason.word() == word)
    }
}

/// What went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The sink could not take it for now.
    Transient,
    /// The sink will never take it.
    Rejected,
    /// Its worker died with it in hand.
    Crash,
    /// It cannot be read.
    Corrupt,
    /// An earlier event of its key is dead, and the policy is to divert the rest.
    Diverted,
}

impl Cause {
    /// The word that stands in the table.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Transient => "transient",
            Self::Rejected => "rejected",
            Self::Crash => "crash",
            Self::Corrupt => "corrupt",
            Self::Diverted => "diverted",
        }
    }

    /// From the word.
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Transient, Self::Rejected, Self::Crash, Self::Corrupt, Self::Diverted]
            .into_iter()
            .find(|cause| cause.word() == word)
    }
}

/// What went wrong, in a word and in words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Failure {
    /// What kind of thing.
    pub cause: Cause,
    /// What the sink or the worker said about it. Kept with the event; cut at 2,000 characters.
    pub error: String,
}

/// The longest error text that is kept, in characters.
pub const ERROR_CHARS_MAX: usize = 2_000;

impl Failure {
    /// A failure; NULs are dropped from the text, and its tail if it is long.
    pub fn new(cause: Cause, error: impl AsRef<str>) -> Self {
        Self { cause, error: error.as_ref().chars().filter(|c| *c != '\0').take(ERROR_CHARS_MAX).collect() }
    }
}

/// When a parked event may be tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// So long after now, by the database's clock.
    In(Duration),
    /// At this moment.
    At(Timestamp),
    /// Not by itself: when what is before it is gone, or when an operator says so.
    Never,
}

/// What becomes of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Change {
    /// It was published: it goes, into the history if one is kept.
    Publish,
    /// It waits among the parked.
    Park {
        /// Why.
        reason: Reason,
        /// Until when.
        due: Due,
        /// Its attempts so far.
        attempts: Attempts,
        /// What went wrong, if anything.
        failure: Option<Failure>,
    },
    /// It goes to the dead letters.
    Bury {
        /// Its attempts so far.
        attempts: Attempts,
        /// What went wrong.
        failure: Failure,
        /// Leaves a marker behind, so that the rest of its key goes the same way.
        diverts: bool,
    },
}

/// One row and what becomes of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Settlement {
    /// Its lane.
    pub lane: Lane,
    /// Its position.
    pub position: i64,
    /// Where it was found.
    pub place: Place,
    /// Its key.
    pub key: Option<Arc<str>>,
    /// What becomes of it.
    pub change: Change,
}

/// Whether a settlement only makes sense while its key is diverted: the marker is put to sleep, or an event follows it. A store checks that
/// under its lock: an operator may have redriven the key since it was read, and where the marker was, its event is back.
pub(crate) fn rests_on_marker(row: &Settlement) -> bool {
    match &row.change {
        Change::Park { reason, .. } => *reason == Reason::Diverted,
        Change::Bury { failure, diverts, .. } => failure.cause == Cause::Diverted && !diverts,
        Change::Publish => false,
    }
}

/// Settlements that are applied together, or where the lane was lost not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct Flush {
    /// Of which target.
    pub target: String,
    /// The leases they are settled under.
    pub tokens: Vec<Token>,
    /// The rows.
    pub settlements: Vec<Settlement>,
    /// Lanes that got past what their last owner was lost with: their crashes are forgotten.
    pub calm: Vec<Lane>,
}

/// What became of a [`Flush`]. What is in neither list was applied.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settled {
    /// Lanes whose token was stale: nothing of them was changed.
    pub stale: HashSet<Lane>,
    /// Positions that were not there any more: cancelled, or settled before; or whose key was redriven since it was found diverted.
    pub missing: HashSet<i64>,
}

/// How far the search for the horizon has come; the store's own business. Dropped, it starts anew.
#[derive(Debug, Clone, Default)]
pub struct HorizonProbe {
    /// The highest position handed out, and the transactions that may still write one at or below it.
    #[cfg_attr(not(feature = "postgres"), allow(dead_code))]
    pub(crate) sampled: Option<(i64, Vec<String>)>,
}

impl HorizonProbe {
    /// It has begun and not ended: a further step may end it.
    pub fn is_under_way(&self) -> bool {
        self.sampled.is_some()
    }
}

/// A lane's floor as its owner knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneFloor {
    /// The lease.
    pub token: Token,
    /// Nothing is at or below it.
    pub floor: i64,
}

/// Where an outbox is kept: all that a worker needs.
///
/// # Contract
/// `testkit::store_suite` tests it, for every store.
/// 1. **Time is the store's.** A lease ends by its clock and no other.
/// 2. **One owner.** [`take`](Self::take) gives a lane to one worker at a time, with a higher epoch than ever before, and commits durably before it
///    answers.
/// 3. **Fenced.** [`settle`](Self::settle), [`renew`](Self::renew), [`name`](Self::name) and [`give`](Self::give) change nothing of a lane whose token is not current.
/// 4. **By row.** A settle touches the rows it names, never a range: a transaction that commits late may put an event between any two others.
/// 5. **Committed reads.** [`fetch`](Self::fetch) sees what is committed when it runs, in one snapshot per call, lowest position first in each lane.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// Registers a worker, or refreshes its registration, and makes its target's lanes if there are none.
    async fn join(&self, member: &Member) -> Result<(), StoreError>;

    /// Who works for this worker's target.
    async fn census(&self, member: &Member) -> Result<Census, StoreError>;

    /// Leases up to `most` of these lanes: released ones first, then those whose lease has ended or whose owner is provably gone.
    async fn take(&self, member: &Member, lanes: LaneSet, most: u16) -> Result<Vec<Leased>, StoreError>;

    /// Prolongs the worker's registration and these leases; the lanes that are still its own.
    async fn renew(&self, member: &Member, tokens: &[Token]) -> Result<HashSet<Lane>, StoreError>;

    /// Gives lanes back, for others to take at once. Their crashes stay on record until a settlement says that the lane is calm, or an
    /// event that kills its workers could hide behind the hand-overs it causes.
    async fn give(&self, member: &Member, tokens: &[Token]) -> Result<(), StoreError>;

    /// Takes the worker off the register and gives back all it has.
    async fn leave(&self, member: &Member) -> Result<(), StoreError>;

    /// A worker was dropped without leaving: lets go at once of what the store holds for it. Its leases stay until they end.
    fn abandon(&self, worker: WorkerId) {
        let _ = worker;
    }

    /// Reads events, in one trip for all lanes. The first event of a lane is read whatever its size.
    async fn fetch(&self, want: &Fetch) -> Result<Page, StoreError>;

    /// Reads parked events that are due, each with those of its key that wait behind it. `above` has no meaning here. A
    /// delayed one tells how its key stands; the others are free.
    async fn fetch_parked(&self, want: &Fetch) -> Result<ParkedFetch, StoreError>;

    /// Looks for one event of a leased lane, hot or parked. What stands for a diverted key is no event.
    async fn find(&self, member: &Member, lane: Lane, position: i64) -> Result<Option<Fetched>, StoreError>;

    /// Writes down, before it is published, the one event that a careful owner has in hand. False: the lease was lost.
    async fn name(&self, member: &Member, token: Token, position: i64) -> Result<bool, StoreError>;

    /// Applies settlements, fenced by their tokens.
    async fn settle(&self, flush: &Flush) -> Result<Settled, StoreError>;

    /// The highest position that any transaction has taken, committed or not: if it has moved, there may soon be something to fetch. None: this store has no
    /// cheaper way to know than to fetch.
    async fn newest(&self) -> Result<Option<i64>, StoreError> {
        Ok(None)
    }

    /// Goes one step on in finding the horizon: every event at or below it that will ever be there is seen by whatever is read from now on. None: not yet
    /// known, or this store has no way to know.
    async fn horizon(&self, probe: &mut HorizonProbe) -> Result<Option<i64>, StoreError> {
        let _ = probe;
        Ok(None)
    }

    /// Writes down, for people to read, that a worker's sink is down and what it said; none: it is there again. Nothing depends on it.
    async fn note_sink(&self, member: &Member, down: Option<&str>) -> Result<(), StoreError> {
        let _ = (member, down);
        Ok(())
    }

    /// Keeps the floors of these lanes for who has them next, fenced by their tokens.
    async fn keep_floors(&self, member: &Member, lanes: &[LaneFloor]) -> Result<(), StoreError> {
        let _ = (member, lanes);
        Ok(())
    }
}
