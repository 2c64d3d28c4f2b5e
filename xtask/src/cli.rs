//! The command line. What each command does is in the file of its name.

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::servers;

/// Tooling for contributors: test servers, the whole test run, tidy checks, benchmarks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", subcommand_required = true)]
pub(crate) struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Task,
}

/// One command each.
#[derive(Debug, Subcommand)]
pub(crate) enum Task {
    /// Run everything: lints, documentation, tidy checks, and all tests against real servers
    ///
    /// The test programs run side by side, with clippy, the feature sets and the documentation in the
    /// background; every test runs, whatever fails. With arguments for `cargo test` the lints come first, and
    /// the tests they select follow. The last line is `N passed, M failed`, with `, K skipped` when tests
    /// were skipped; a failed step that is no test counts as one failure. Missing Debian packages are
    /// installed (as root).
    #[command(after_help = "Examples:
  cargo xtask test                                 everything, against every server
  cargo xtask test --only postgres15,mariadb       only these servers, and only these are required
  cargo xtask test --with tansu                    another broker for the Kafka sink too, which is built first
  cargo xtask test -- -p sendoff claim             arguments for `cargo test`
  cargo xtask test -- -p sendoff -- --nocapture    arguments for the test binaries")]
    Test(TestArgs),
    /// Start the test servers, print how to reach them, and keep them up until Ctrl-C
    ///
    /// Missing Debian packages are installed first (as root).
    #[command(after_help = "Examples:
  cargo xtask services                      all; paste what it prints elsewhere
  cargo xtask services --only postgres15    one server
  cargo xtask services --install-only       only install what is missing
  cargo xtask services --check-install      is it all from packages we name?")]
    Services(ServicesArgs),
    /// Check what compilers do not: file sizes, names, leftovers, SQL that one dialect lacks
    #[command(after_help = "Example:
  cargo xtask tidy")]
    Tidy,
    /// Run a benchmark with the servers it needs
    #[command(after_help = "Examples:
  cargo xtask bench claim                      rates and trips of every store, fast path beside floor
  cargo xtask bench sinks                      a PostgreSQL outbox into every broker, beside the broker by itself
  cargo xtask bench sinks --only nats,kafka    two of them
  cargo xtask bench task-peers                 tasks beside other queues on PostgreSQL, each by its public interface")]
    Bench(BenchArgs),
    /// Run the relay in a simulated world where everything goes wrong, for many seeds
    ///
    /// A seed is one history, the same each time. The first one that breaks a rule ends the run and is printed with its history.
    #[command(after_help = "Examples:
  cargo xtask sim                             a million seeds
  cargo xtask sim --seeds 1 --from 4711       one seed again
  SIM_SEED=4711 cargo test -p sendoff-relay --test sim seeds")]
    Sim(SimArgs),
}

/// Which servers, and what happens to their directory.
#[derive(Debug, Args)]
pub(crate) struct FleetArgs {
    /// Only these servers (and what they stand in front of)
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = PossibleValuesParser::new(servers::names()))]
    pub(crate) only: Vec<String>,
    /// These too, which take long to be had the first time
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = PossibleValuesParser::new(servers::names_on_request()))]
    pub(crate) with: Vec<String>,
    /// Keep the servers' data and logs afterwards
    #[arg(long)]
    pub(crate) keep: bool,
}

/// `cargo xtask test`
#[derive(Debug, Args)]
pub(crate) struct TestArgs {
    /// The servers to test against.
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    /// Arguments for `cargo test`
    #[arg(last = true, value_name = "ARGS")]
    pub(crate) cargo_args: Vec<String>,
}

/// `cargo xtask services`
#[derive(Debug, Args)]
pub(crate) struct ServicesArgs {
    /// The servers to start.
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    /// Install what is missing, start nothing
    #[arg(long, conflicts_with = "check_install")]
    pub(crate) install_only: bool,
    /// Check that every program used belongs to a package that would be installed, start nothing
    #[arg(long)]
    pub(crate) check_install: bool,
}

/// `cargo xtask bench`
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Which benchmark
    #[arg(value_enum)]
    pub(crate) bench: Bench,
    /// `sinks`, `task-peers`: only these
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// `sinks`: so many events
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub(crate) events: u32,
    /// `task-peers`: so many tasks
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) tasks: u32,
    /// `task-peers`: each worker runs so many tasks at a time
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) concurrency: u32,
    /// `sinks`, `task-peers`: each side is measured so often, in turn with the others
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) rounds: u16,
    /// Keep the servers' data and logs afterwards
    #[arg(long)]
    pub(crate) keep: bool,
}

/// `cargo xtask sim`
#[derive(Debug, Args)]
pub(crate) struct SimArgs {
    /// How many seeds
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    pub(crate) seeds: u64,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) from: u64,
}

/// The benchmarks there are.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Bench {
    /// Rows per second and round trips of a claim, on every store
    Claim,
    /// Drain and insert of the native outbox, beside the usual statements
    Outbox,
    /// ADR-003's statements, its table adopted, and the native outbox, with 1, 2, 4 and 8 processors
    Adopted,
    /// Claims of tasks in batches, beside the statement that claims one at a time; with few and with many of them
    Tasks,
    /// Tasks enqueued and run beside other queues on PostgreSQL; builds those, which are no dependencies of anything else
    TaskPeers,
    /// From a PostgreSQL outbox into every broker, beside the broker and the relay by themselves
    Sinks,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn names_are_split_and_arguments_passed_on() {
        let cli = Cli::try_parse_from([
            "xtask",
            "test",
            "--only",
            "postgres15,mariadb",
            "--",
            "-p",
            "x",
            "--",
            "y",
        ]);
        let Ok(Cli { command: Task::Test(args) }) = cli else { panic!("not parsed: {cli:?}") };
        assert_eq!(args.fleet.only, ["postgres15", "mariadb"]);
        assert_eq!(args.cargo_args, ["-p", "x", "--", "y"]);
        assert!(Cli::try_parse_from(["xtask", "test", "--only", "oracle"]).is_err());
    }
}
