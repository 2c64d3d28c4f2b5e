//! The command line of what keeps an outbox going: `run` and `migrate`.

use std::net::SocketAddr;

use clap::Args;
use sendoff::outbox::LaneSet;

use super::StoreArgs;
use crate::config::LogFormat;

/// `sendoff run`
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Where events go: stdout:, null:, file:PATH, https://HOST/PATH, nats://HOST:PORT/STREAM, redis://HOST:PORT/0 (a stream for each
    /// topic), amqp://HOST:PORT/VHOST?exchange=NAME, mqtt://HOST:PORT, inbox:DATABASE-URL#TABLE, kafka://HOST:PORT, sqs:QUEUE-URL, sns:TOPIC-ARN
    #[arg(long, value_name = "URL")]
    pub(crate) sink: Option<String>,
    /// Whose events [default: default; all that the configuration has]
    #[arg(long, value_name = "NAME")]
    pub(crate) target: Option<String>,
    /// What this relay is called [default: sendoff]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// So many workers share the lanes [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub(crate) workers: Option<u16>,
    /// Only these lanes of 0..63, both ends included: 0..15, 7, or 0..7,12; relays with the same lanes share them [default: all]
    #[arg(long, value_name = "LANES")]
    pub(crate) lanes: Option<LaneSet>,
    /// Of the relays that are started so, with the same lanes, one works; the others stand by and take over when it goes
    #[arg(long)]
    pub(crate) exclusive: bool,
    /// How long a lease lasts, in seconds [default: 30]
    #[arg(long, value_name = "SECONDS")]
    pub(crate) lease: Option<Seconds>,
    /// Hear of commits that the host announces (PostgreSQL), beside looking for events
    #[arg(long)]
    pub(crate) listen: bool,
    /// Serve /metrics, /healthz and /readyz here, such as 127.0.0.1:9464 [default: nowhere]
    #[arg(long, value_name = "ADDRESS", env = "SENDOFF_ADMIN")]
    pub(crate) admin: Option<SocketAddr>,
    /// What is logged: off, error, warn, info, debug, trace, or crates with their levels [default: info]
    #[arg(long, value_name = "LEVEL", env = "SENDOFF_LOG")]
    pub(crate) log: Option<String>,
    /// How it is written [default: text]
    #[arg(long, value_name = "FORMAT", env = "SENDOFF_LOG_FORMAT")]
    pub(crate) log_format: Option<LogFormat>,
}

/// `sendoff probe`
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// What to ask: healthz, whether it is alive; readyz, whether it can work
    #[arg(value_name = "WHAT", default_value = "readyz", value_parser = ["healthz", "readyz"])]
    pub(crate) what: String,
    /// The admin address of the process
    #[arg(long, value_name = "ADDRESS", env = "SENDOFF_ADMIN")]
    pub(crate) admin: Option<SocketAddr>,
    /// The configuration file, which has the address if --admin does not
    #[arg(long, value_name = "FILE", env = "SENDOFF_CONFIG")]
    pub(crate) config: Option<std::path::PathBuf>,
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
    /// Which outbox.
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Print it as SQL instead, for those who run their migrations themselves
    #[arg(long, conflicts_with = "check")]
    pub(crate) print: bool,
    /// Only say whether there is anything to do: exit code 4 if there is
    #[arg(long)]
    pub(crate) check: bool,
    /// Print how the tables stand as JSON
    #[arg(long, conflicts_with = "print")]
    pub(crate) json: bool,
}
