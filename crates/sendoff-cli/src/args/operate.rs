//! The command line of what changes something.

use std::time::Duration;

use clap::{Args, ValueEnum};
use sendoff::EventId;
use sendoff::outbox::Cause;

use super::StoreArgs;

/// `sendoff cancel`
#[derive(Debug, Args)]
pub(crate) struct CancelArgs {
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The event's id, a UUID
    #[arg(value_name = "EVENT")]
    pub(crate) event: EventId,
    /// Print what became of it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What went wrong, as it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CauseWord {
    /// The sink could not take it, and its attempts ran out
    Transient,
    /// The sink will never take it
    Rejected,
    /// Its worker died with it in hand
    Crash,
    /// It cannot be read
    Corrupt,
    /// An earlier event of its key is dead
    Diverted,
}

impl From<CauseWord> for Cause {
    fn from(word: CauseWord) -> Self {
        match word {
            CauseWord::Transient => Self::Transient,
            CauseWord::Rejected => Self::Rejected,
            CauseWord::Crash => Self::Crash,
            CauseWord::Corrupt => Self::Corrupt,
            CauseWord::Diverted => Self::Diverted,
        }
    }
}

/// Which events.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct SelectionArgs {
    /// One event, by its id
    #[arg(value_name = "EVENT", conflicts_with_all = ["key", "all", "topic", "cause", "error"])]
    pub(crate) event: Option<EventId>,
    /// All of a key
    #[arg(long, value_name = "KEY", conflicts_with_all = ["all", "topic", "cause", "error"])]
    pub(crate) key: Option<String>,
    /// All of the target
    #[arg(long)]
    pub(crate) all: bool,
    /// Dead ones of this topic
    #[arg(long, value_name = "TOPIC")]
    pub(crate) topic: Option<String>,
    /// Dead ones with this cause
    #[arg(long, value_enum)]
    pub(crate) cause: Option<CauseWord>,
    /// Dead ones whose error has this text in it
    #[arg(long, value_name = "TEXT")]
    pub(crate) error: Option<String>,
}

/// Which events, and how many of them.
#[derive(Debug, Args)]
pub(crate) struct BulkArgs {
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Which events.
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    /// Of which target
    #[arg(long, value_name = "NAME", default_value = sendoff::DEFAULT_TARGET)]
    pub(crate) target: String,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: u64,
    /// Only say how many there are
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print what was done as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sendoff redrive`
#[derive(Debug, Args)]
pub(crate) struct RedriveArgs {
    #[command(flatten)]
    pub(crate) bulk: BulkArgs,
    /// So many a second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rate: Option<u32>,
}

/// `sendoff discard`
#[derive(Debug, Args)]
pub(crate) struct DiscardArgs {
    #[command(flatten)]
    pub(crate) bulk: BulkArgs,
    /// Really delete more than one event
    #[arg(long)]
    pub(crate) yes: bool,
}

/// `sendoff pause` and `sendoff resume`
#[derive(Debug, Args)]
pub(crate) struct PauseArgs {
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Which target
    #[arg(value_name = "TARGET")]
    pub(crate) target: String,
    /// Print how it stands as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What is purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PurgeWhat {
    /// History: events that were delivered
    Published,
    /// Dead events
    Dead,
}

/// `sendoff purge`
#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// What
    #[arg(value_enum)]
    pub(crate) what: PurgeWhat,
    /// Only what is older: 12h, 7d
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) older_than: Duration,
    /// Of which target
    #[arg(long, value_name = "NAME", default_value = sendoff::DEFAULT_TARGET)]
    pub(crate) target: String,
    /// So many are deleted at a time, each time in a transaction of its own
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) batch: u32,
    /// Print how many as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
