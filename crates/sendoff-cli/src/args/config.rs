//! The command line of `config`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `sendoff config`
#[derive(Debug, Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

/// What about it.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print a configuration to begin with, with comments
    Init,
    /// Say whether a configuration is right
    Check {
        /// The file
        #[arg(value_name = "FILE", env = "SENDOFF_CONFIG")]
        file: PathBuf,
        /// Ask every server that it names
        #[arg(long)]
        connect: bool,
        /// Print what was checked as JSON
        #[arg(long)]
        json: bool,
    },
    /// Print a JSON schema, for editors
    Schema,
    /// Print every key, as docs/configuration.md has it
    #[command(hide = true)]
    Reference,
}
