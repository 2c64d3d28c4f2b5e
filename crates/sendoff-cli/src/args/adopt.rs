//! The command line of `adopt`.

use std::path::PathBuf;

use clap::Args;

use super::StoreArgs;

/// `sendoff adopt`
#[derive(Debug, Args)]
pub(crate) struct AdoptArgs {
    /// Which database.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// The table: outbox, or shop.outbox; without it, that of the configuration as it is mapped there
    #[arg(value_name = "TABLE")]
    pub(crate) table: Option<String>,
    /// Write the configuration to this file; without it, it is printed
    #[arg(long, value_name = "FILE", requires = "table")]
    pub(crate) write: Option<PathBuf>,
    /// Write it even if the file is there
    #[arg(long, requires = "write")]
    pub(crate) force: bool,
    /// Read what waits, claim nothing, and say what would be delivered and what would not
    #[arg(long)]
    pub(crate) shadow: bool,
    /// So many of the first events are shown
    #[arg(long, value_name = "N", default_value_t = 5, requires = "shadow", value_parser = clap::value_parser!(u32).range(0..=500))]
    pub(crate) first: u32,
    /// At most about so many rows are read
    #[arg(long, value_name = "N", default_value_t = 100_000, requires = "shadow", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) limit: u64,
    /// Print what was found as JSON
    #[arg(long)]
    pub(crate) json: bool,
}
