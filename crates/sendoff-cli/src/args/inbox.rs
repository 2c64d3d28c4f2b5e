//! The command line of `inbox`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::{MigrateArgs, PartStatsArgs, StoreArgs};

/// `sendoff inbox`
#[derive(Debug, Args)]
pub(crate) struct InboxArgs {
    #[command(subcommand)]
    pub(crate) command: InboxCommand,
}

/// What about it.
#[derive(Debug, Subcommand)]
pub(crate) enum InboxCommand {
    /// What is remembered of each consumer
    #[command(after_help = "Examples:
  sendoff inbox stats
  sendoff inbox stats --json | jq '.consumers[] | {consumer, newest_seconds}'")]
    Stats(PartStatsArgs),
    /// Forget what was handled long ago
    ///
    /// A copy of an event that arrives after its row is gone is handled again: keep rows for longer than any copy may take. docs/inbox.md says how long that is.
    #[command(after_help = "Example:
  sendoff inbox purge --older-than 7d")]
    Purge(InboxPurgeArgs),
    /// Make the inbox's tables, or bring them up to date
    #[command(after_help = "Examples:
  sendoff inbox migrate --store postgres://localhost/books
  sendoff inbox migrate --store postgres://localhost/books --print | psql books")]
    Migrate(MigrateArgs),
}

/// `sendoff inbox purge`
#[derive(Debug, Args)]
pub(crate) struct InboxPurgeArgs {
    /// Which database.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Only what was handled longer ago: 7d, 30d
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) older_than: Duration,
    /// Really forget what was handled within the last hour
    #[arg(long)]
    pub(crate) yes: bool,
    /// So many rows are deleted at a time
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) batch: u32,
    /// Print how many as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
