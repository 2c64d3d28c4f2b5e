//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

/// Gets every committed event to its broker, and nothing that was rolled back.
#[derive(Debug, Parser)]
#[command(name = "sendoff", version, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Relay an outbox's events to a sink, until SIGTERM or SIGINT
    ///
    /// The first signal stops claiming, finishes what is in flight and gives the lanes back; a second one quits at once.
    #[command(after_help = "Examples:
  sendoff run --store postgres://localhost/shop --sink stdout:
  sendoff run --store sqlite:shop.db --sink file:/var/log/shop/events.jsonl")]
    Run(RunArgs),
    /// Make the outbox's tables, or bring them up to date
    #[command(after_help = "Example:
  sendoff migrate --store postgres://localhost/shop")]
    Migrate(MigrateArgs),
    /// Watch it work: producers commit and roll back, workers deliver, one is killed and one is frozen
    ///
    /// Without --store it uses SQLite in a temporary file and needs no server. It ends with a verdict: lost, duplicated, out of order, delivered
    /// though rolled back. The exit code is 1 if a guarantee did not hold.
    #[command(after_help = "Examples:
  sendoff demo
  sendoff demo --events 100000 --store postgres://localhost/shop
  sendoff demo --json | jq .lost")]
    Demo(DemoArgs),
    /// One worker process of the demo.
    #[command(hide = true)]
    DemoWorker(DemoWorkerArgs),
    /// Measure a server: rates and latencies, beside the bare statements in the same run
    ///
    /// It works in tables of its own, which it removes, and checks what it delivered.
    #[command(after_help = "Examples:
  sendoff bench drain --store postgres://localhost/shop
  sendoff bench latency --store postgres://localhost/shop --json
  sendoff bench steady --store sqlite:/tmp/bench.db --workers 2")]
    Bench(BenchArgs),
    /// The host of a latency measurement.
    #[command(hide = true)]
    BenchProducer(BenchProducerArgs),
}

/// `sendoff run`
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The database: postgres://…, mysql://…, sqlite:PATH
    #[arg(long, value_name = "URL")]
    pub(crate) store: String,
    /// Where events go: stdout:, null:, file:PATH, https://HOST/PATH, nats://HOST:PORT/STREAM, redis://HOST:PORT/0 (a stream for each
    /// topic), amqp://HOST:PORT/VHOST?exchange=NAME, mqtt://HOST:PORT, inbox:DATABASE-URL#TABLE
    #[arg(long, value_name = "URL")]
    pub(crate) sink: String,
    /// Whose events
    #[arg(long, value_name = "NAME", default_value = sendoff::DEFAULT_TARGET)]
    pub(crate) target: String,
    /// What this relay is called
    #[arg(long, value_name = "NAME", default_value = "sendoff")]
    pub(crate) name: String,
    /// So many workers share the lanes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) workers: u16,
    /// How long a lease lasts, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30")]
    pub(crate) lease: Seconds,
    /// Hear of commits that the host announces (PostgreSQL), beside looking for events
    #[arg(long)]
    pub(crate) listen: bool,
}

/// A number of seconds, from 1.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seconds(u16);

impl std::str::FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse()
            .ok()
            .filter(|number| *number > 0)
            .map(Self)
            .ok_or_else(|| "give whole seconds, at least 1".to_owned())
    }
}

impl From<Seconds> for std::time::Duration {
    fn from(seconds: Seconds) -> Self {
        Self::from_secs(seconds.0.into())
    }
}

/// `sendoff migrate`
#[derive(Debug, Args)]
pub(crate) struct MigrateArgs {
    /// The database: postgres://…, mysql://…, sqlite:PATH
    #[arg(long, value_name = "URL")]
    pub(crate) store: String,
}

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
