//! The command line of the demo.

use std::path::PathBuf;

use clap::Args;

/// `sendoff demo`
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The database: postgres://…, mysql://…, sqlite:PATH [default: SQLite in a temporary file]
    #[arg(long, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// About so many events are committed
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(100..))]
    pub(crate) events: u64,
    /// Worker processes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(3..=32))]
    pub(crate) workers: u16,
    /// Take the fence away, to see that the verdict notices: a worker that was frozen past its leases settles all the same
    #[arg(long)]
    pub(crate) without_fence: bool,
    /// Print the verdict as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What the demo tells its worker processes.
#[derive(Debug, Args)]
pub(crate) struct DemoWorkerArgs {
    #[arg(long)]
    pub(crate) store: String,
    #[arg(long)]
    pub(crate) names: String,
    #[arg(long)]
    pub(crate) journal: PathBuf,
    #[arg(long)]
    pub(crate) slow_one_of: u64,
    #[arg(long)]
    pub(crate) without_fence: bool,
    #[arg(long)]
    pub(crate) name: String,
}
