//! The command line of `doctor`.

use std::time::Duration;

use clap::Args;

use super::StoreArgs;

/// `sendoff doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Only this target
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// So many workers should be there for a target
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<u16>,
    /// A transaction may be open for so long
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = humantime::parse_duration)]
    pub(crate) xmin_age: Duration,
    /// So many deleted rows may wait for a vacuum that is late (PostgreSQL)
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) dead_rows: u32,
    /// Check what takes long as well: every page of an SQLite file
    #[arg(long)]
    pub(crate) deep: bool,
    /// Print what was found as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
