//! The command line of the questions.

use clap::{Args, ValueEnum};
use sendoff::EventId;
use sendoff::outbox::EventState;

use super::StoreArgs;

/// `sendoff status`
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Again and again, every so many seconds
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) watch: Option<u16>,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A state, as it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum State {
    /// Written, and no worker has its lane yet
    Unprocessed,
    /// A worker has its lane
    Processing,
    /// It failed and waits for its retry, or behind one that did
    Failed,
    /// The worker that had its lane is lost
    Abandoned,
    /// It will not be tried again by itself
    Dead,
    /// Delivered, and kept as history
    Published,
}

impl From<State> for EventState {
    fn from(state: State) -> Self {
        match state {
            State::Unprocessed => Self::Unprocessed,
            State::Processing => Self::Processing,
            State::Failed => Self::Failed,
            State::Abandoned => Self::Abandoned,
            State::Dead => Self::Dead,
            State::Published => Self::Published,
        }
    }
}

/// `sendoff list`
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// In which state
    #[arg(value_enum)]
    pub(crate) state: State,
    /// Of which target
    #[arg(long, value_name = "NAME", default_value = sendoff::DEFAULT_TARGET)]
    pub(crate) target: String,
    /// Only above this position: the last one of the page before
    #[arg(long, value_name = "POSITION", default_value_t = 0)]
    pub(crate) after: i64,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    /// Print them as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sendoff show` and `sendoff explain`
#[derive(Debug, Args)]
pub(crate) struct EventArgs {
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The event's id, a UUID
    #[arg(value_name = "EVENT")]
    pub(crate) event: EventId,
    /// Print it as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sendoff lanes`
#[derive(Debug, Args)]
pub(crate) struct LanesArgs {
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Of which target
    #[arg(long, value_name = "NAME", default_value = sendoff::DEFAULT_TARGET)]
    pub(crate) target: String,
    /// Print them as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sendoff workers`
#[derive(Debug, Args)]
pub(crate) struct WorkersArgs {
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print them as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `sendoff parked`
#[derive(Debug, Args)]
pub(crate) struct ParkedArgs {
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Of which target
    #[arg(long, value_name = "NAME", default_value = sendoff::DEFAULT_TARGET)]
    pub(crate) target: String,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,
    /// Print them as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
