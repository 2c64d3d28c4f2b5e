//! What happened in one run, as the world around the relays saw it. Nothing here is told by the relays themselves.

use std::fmt;

use sendoff::outbox::{Cause, Lane};

/// Virtual time since the run began, in microseconds.
pub(crate) type Micros = u64;

/// One start of a relay: it is crashed, frozen or stopped as a whole.
pub(crate) type IncarnationNo = u32;

/// A worker, by a number that is the same each time a seed is run.
pub(crate) type WorkerNo = u32;

/// What an event does to who publishes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nature {
    /// It is delivered when the sink works.
    Plain,
    /// The sink rejects it.
    Poison,
    /// Its first tries fail.
    Flaky(u32),
    /// Whoever publishes it dies of it.
    Killer,
}

/// What went wrong on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum FaultKind {
    /// The incarnation is gone at once.
    Crash,
    /// Its future is dropped.
    Drop,
    /// It stands still, and goes on.
    Freeze,
    /// It cannot reach the store, though it can reach the sink.
    Outage,
    /// One call of the store fails before it has an effect.
    StoreError,
    /// One call of the store has its effect, and the answer is lost.
    StoreReplyLost,
    /// A call of the sink never answers.
    SinkHangs,
    /// What a call of the sink sends arrives at a time of its own.
    Stray,
    /// The sink takes events, and the answer is lost.
    SinkReplyLost,
    /// A call of the sink takes long.
    SinkSlow,
    /// The sink answers for some of the events.
    SinkPartial,
    /// The sink fails an event for now.
    SinkFails,
    /// The sink is down.
    SinkDown,
    /// A killer has killed.
    Killed,
}

/// What the settlement of an event says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settling {
    Published,
    Parked { failures: u32, crashes: u32 },
    Buried { cause: Cause, failures: u32, crashes: u32 },
}

/// What a settlement did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Applied,
    /// Refused for its token.
    Stale,
    /// There was no such row any more.
    Missing,
}

/// The proof that something was done under.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Proof {
    pub(crate) worker: WorkerNo,
    pub(crate) lane: Lane,
    pub(crate) epoch: i64,
}

/// How a try of the sink ended without a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Failed {
    Transient,
    Rejected,
    Down,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    Enqueue {
        tx: u32,
        position: i64,
        key: Option<u32>,
        nature: Nature,
        is_delayed: bool,
    },
    Commit {
        tx: u32,
    },
    Rollback {
        tx: u32,
    },
    Start {
        incarnation: IncarnationNo,
        relay: u32,
    },
    Stop {
        incarnation: IncarnationNo,
    },
    Take {
        incarnation: IncarnationNo,
        proof: Proof,
        lease: Micros,
        crashes: u32,
        named: Option<i64>,
    },
    Renew {
        proof: Proof,
        kept: bool,
        lease: Micros,
    },
    Give {
        proof: Proof,
    },
    Leave {
        worker: WorkerNo,
    },
    Name {
        proof: Proof,
        position: i64,
    },
    Settle {
        incarnation: IncarnationNo,
        proof: Proof,
        position: i64,
        settling: Settling,
        effect: Effect,
    },
    /// The sink was called for this event.
    Try {
        incarnation: IncarnationNo,
        proof: Proof,
        position: i64,
        call: u32,
    },
    /// The broker has it. `invoked`: when the sink was called.
    Deliver {
        incarnation: IncarnationNo,
        proof: Proof,
        position: i64,
        call: u32,
        invoked: Micros,
    },
    /// The sink said that it did not take it.
    Fail {
        position: i64,
        call: u32,
        how: Failed,
    },
    /// The sink's answer has reached the relay.
    Answer {
        call: u32,
    },
    Fault {
        kind: FaultKind,
        incarnation: Option<IncarnationNo>,
        until: Micros,
    },
    /// From here on nothing goes wrong, but for killers.
    FaultsOff,
    /// Nothing is left to be delivered. None: something was left when the time was up.
    Drained {
        after: Option<Micros>,
    },
    /// Found in the outbox at the end: dead, and why.
    Dead {
        position: i64,
        cause: Cause,
        failures: u32,
        crashes: u32,
    },
    /// Found in the outbox at the end.
    Left {
        position: i64,
    },
    /// A relay that did not end when it was told to.
    Hung {
        relay: u32,
    },
}

/// What happened, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) at: Micros,
    pub(crate) what: What,
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>9}.{:03} ms  {:?}", self.at / 1_000, self.at % 1_000, self.what)
    }
}

impl What {
    /// The event it is about, if it is about one.
    pub(crate) fn position(&self) -> Option<i64> {
        match self {
            Self::Enqueue { position, .. }
            | Self::Name { position, .. }
            | Self::Settle { position, .. }
            | Self::Try { position, .. }
            | Self::Deliver { position, .. }
            | Self::Fail { position, .. }
            | Self::Dead { position, .. }
            | Self::Left { position } => Some(*position),
            _ => None,
        }
    }

    /// The lane it is about, if it is about one.
    pub(crate) fn lane(&self) -> Option<Lane> {
        match self {
            Self::Take { proof, .. }
            | Self::Renew { proof, .. }
            | Self::Give { proof }
            | Self::Name { proof, .. }
            | Self::Settle { proof, .. }
            | Self::Try { proof, .. }
            | Self::Deliver { proof, .. } => Some(proof.lane),
            _ => None,
        }
    }
}
