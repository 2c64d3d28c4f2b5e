//! The command line of the benchmark.

use clap::{Args, ValueEnum};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Measure {
    /// How fast a backlog goes
    Drain,
    /// How much goes through while it is written
    Steady,
    /// How long from commit to publish, at 100 events a second
    Latency,
    /// How fast events are written
    Insert,
}

impl Measure {
    /// As it is given on the command line.
    pub(crate) fn word(&self) -> String {
        self.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
    }
}

/// `sendoff bench`
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// What is measured
    #[arg(value_enum)]
    pub(crate) measure: Measure,
    /// The database: postgres://…, mysql://…, sqlite:PATH
    #[arg(long, value_name = "URL")]
    pub(crate) store: String,
    /// So many events [default: 100000; 3000 for latency]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) events: Option<u64>,
    /// So many workers share the lanes
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) workers: u16,
    /// At most so many events are claimed at a time
    #[arg(long, value_name = "N", default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) batch: u32,
    /// Payload bytes of each event
    #[arg(long, value_name = "BYTES", default_value_t = 300, value_parser = clap::value_parser!(u32).range(24..=1_000_000))]
    pub(crate) payload: u32,
    /// So many different keys
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) keys: u32,
    /// Where the events go: `file:`, a temporary one, or any sink's URL
    #[arg(long, value_name = "URL", default_value = "null:")]
    pub(crate) sink: String,
    /// Each side is measured so often, in turn with the others
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=100))]
    pub(crate) rounds: u16,
    /// The producer announces its commits, and the relay listens (PostgreSQL; latency)
    #[arg(long)]
    pub(crate) announce: bool,
    /// The relay's settlements do not wait for the disk (PostgreSQL)
    #[arg(long)]
    pub(crate) settle_asynchronously: bool,
    /// Print the figures as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a latency measurement tells its producer.
#[derive(Debug, Args)]
pub(crate) struct BenchProducerArgs {
    #[arg(long)]
    pub(crate) store: String,
    #[arg(long)]
    pub(crate) names: String,
    #[arg(long)]
    pub(crate) events: u64,
    #[arg(long)]
    pub(crate) payload: u32,
    #[arg(long)]
    pub(crate) keys: u32,
    #[arg(long)]
    pub(crate) announce: bool,
}
