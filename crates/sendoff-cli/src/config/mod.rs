//! The configuration file: what stands in it, and what it comes to. Every key is here; `sendoff config schema` and `docs/configuration.md` are made from these types.

mod load;
pub(crate) mod reference;
pub(crate) mod sinks;
mod table_mapping;
pub(crate) mod table_options;
mod values;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroU64};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result};
use schemars::JsonSchema;
use sendoff::outbox::OnExhausted;
use sendoff_relay::{BreakerConfig, RetryPolicy, TargetConfig};
use serde::Deserialize;

use crate::exit::{Refused, refuse};
use crate::table;

pub(crate) use self::sinks::SinkConfig;
pub(crate) use self::table_options::TableConfig;
pub(crate) use self::values::{Hidden, Lanes, Span};

/// A configuration to begin with.
pub(crate) const STARTER: &str = include_str!("starter.toml");

/// The configuration of `sendoff`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    /// The outbox. For several in one process, shards or tenants, give `stores` instead.
    pub(crate) store: Option<StoreConfig>,
    /// Several outboxes, each under a name. Every target is served in each of them.
    pub(crate) stores: BTreeMap<String, StoreConfig>,
    /// A host's own outbox table in each store, whose rows are relayed instead of events of sendoff's own tables.
    pub(crate) table: Option<TableConfig>,
    /// How relays work, unless a target says otherwise.
    pub(crate) relay: RelayConfig,
    /// Where events go, by the name of their target. An event that names none is of `default`.
    pub(crate) targets: BTreeMap<String, TargetOptions>,
    /// How long what is over is kept.
    pub(crate) retention: RetentionConfig,
    /// Where the figures are, and the answers for who watches over the process.
    pub(crate) admin: AdminConfig,
    /// What is logged.
    pub(crate) telemetry: TelemetryConfig,
}

/// An outbox.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreConfig {
    /// The database: `postgres://…`, `mysql://…`, `sqlite:PATH`; or where that stands: `{ env = "DATABASE_URL" }`, `{ file = "/run/secrets/database" }`.
    pub(crate) url: Hidden,
    /// The schema of the tables (PostgreSQL), or what their names begin with. Usually `sendoff`, or `sendoff_`.
    pub(crate) names: Option<String>,
    /// Hear of commits that the host announces (PostgreSQL), beside looking for events.
    #[serde(default)]
    pub(crate) listen: bool,
    /// Settlements do not wait for the disk (PostgreSQL). Faster; after a crash of the server the events that were delivered last come again.
    #[serde(default)]
    pub(crate) settle_asynchronously: bool,
}

/// How relays work.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RelayConfig {
    /// What this relay is called.
    pub(crate) name: String,
    /// So many workers share the lanes of a target.
    pub(crate) workers: NonZeroU32,
    /// How long a lease lasts.
    pub(crate) lease: Span,
    /// When the relay stops, what is in flight has so long to be settled.
    pub(crate) grace: Span,
}

impl Default for RelayConfig {
    fn default() -> Self {
        let usual = TargetConfig::default();
        Self {
            name: "sendoff".to_owned(),
            workers: NonZeroU32::MIN,
            lease: usual.lease.into(),
            grace: usual.grace.into(),
        }
    }
}

/// Where the events of a target go, and how.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TargetOptions {
    /// The sink: its URL, or a table with its `url` and its own settings.
    pub(crate) sink: SinkConfig,
    /// So many workers share the lanes.
    pub(crate) workers: Option<NonZeroU32>,
    /// Only these lanes of 0..63, both ends included: `0..15`, `7` or `0..7,12`. Relays with the same lanes share them. Without it: all.
    pub(crate) lanes: Option<Lanes>,
    /// Of the exclusive relays with the same lanes one works, the others stand by. It has one worker.
    #[serde(default)]
    pub(crate) exclusive: bool,
    /// How long a lease lasts.
    pub(crate) lease: Option<Span>,
    /// At most so many events are claimed at a time.
    pub(crate) batch: Option<NonZeroU32>,
    /// At most so many events of a worker are claimed and not settled.
    pub(crate) window: Option<NonZeroU32>,
    /// At most about so many payload bytes of a worker are in memory.
    pub(crate) bytes: Option<NonZeroU64>,
    /// So many calls of the sink at a time, for each worker.
    pub(crate) concurrency: Option<NonZeroU32>,
    /// At most so many events a second, over all workers of this process.
    pub(crate) rate: Option<NonZeroU32>,
    /// A call of the sink that takes longer has failed.
    pub(crate) publish_timeout: Option<Span>,
    /// When a failed event is tried again.
    #[serde(default)]
    pub(crate) retry: RetryOptions,
    /// What becomes of an event whose attempts have run out, and of its key.
    #[serde(default)]
    pub(crate) on_exhausted: Exhausted,
    /// What is done while the sink is down.
    #[serde(default)]
    pub(crate) breaker: BreakerOptions,
    /// An idle worker looks for events so often at least.
    pub(crate) poll_max: Option<Span>,
}

/// When a failed event is tried again: after a random part of `base` × 2ⁿ, of `cap` at most.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetryOptions {
    /// The most that the first retry waits.
    base: Option<Span>,
    /// The most that any waits.
    cap: Option<Span>,
    /// After so many failed attempts it is given up.
    attempts: Option<NonZeroU32>,
}

/// What becomes of an event whose attempts have run out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Exhausted {
    /// It is dead, and its key goes on without it.
    #[default]
    Skip,
    /// It waits for an operator, and its key with it.
    Block,
    /// It is dead, and the rest of its key too.
    Divert,
}

/// What is done while a sink is down.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BreakerOptions {
    /// It is looked at again after this time, which doubles each time that it is still down.
    probe: Option<Span>,
    /// And so often at least.
    probe_max: Option<Span>,
}

/// How long what is over is kept.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RetentionConfig {
    /// Events that were delivered are kept as history for so long. Without it they are deleted at once.
    pub(crate) published: Option<Span>,
    /// Dead events are deleted after so long. Without it they stay until somebody discards them.
    pub(crate) dead: Option<Span>,
}

/// Where the figures are (`/metrics`, for Prometheus), and the answers for who watches over the process (`/healthz`, `/readyz`).
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AdminConfig {
    /// The address to listen on, such as `127.0.0.1:9464`. Without it there is no listener.
    pub(crate) listen: Option<SocketAddr>,
    /// Who reads the figures has to show it: `Authorization: Bearer TOKEN`. Needed to listen for other machines.
    pub(crate) token: Option<Hidden>,
    /// A process is not ready if one of its stores has not answered for so long.
    pub(crate) ready_within: Span,
}

impl Default for AdminConfig {
    fn default() -> Self {
        Self { listen: None, token: None, ready_within: Duration::from_secs(15).into() }
    }
}

/// What is logged, to standard error.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TelemetryConfig {
    /// `off`, `error`, `warn`, `info`, `debug` or `trace`; or crates with their levels: `sendoff_relay=debug,sqlx=info`.
    pub(crate) log: String,
    /// For people or for programs.
    pub(crate) format: LogFormat,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { log: "info".to_owned(), format: LogFormat::default() }
    }
}

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LogFormat {
    /// As text.
    #[default]
    Text,
    /// As an object of JSON.
    Json,
}

impl Config {
    /// Reads it from a file.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                refuse!("the configuration {shown}: {error}; `sendoff config init` writes one to begin with")
            }
        };
        Self::of_text(&text).with_context(|| format!("the configuration {shown}"))
    }

    /// Reads it.
    pub(crate) fn of_text(text: &str) -> Result<Self> {
        let config = load::parse(text)?;
        config.table_alone()?;
        Ok(config)
    }

    /// Refuses what a host's own table cannot have.
    fn table_alone(&self) -> Result<()> {
        let Some(table) = &self.table else { return Ok(()) };
        let stores = self.store.iter().chain(self.stores.values());
        for store in stores {
            for (is_given, key) in [
                (store.names.is_some(), "names"),
                (store.listen, "listen"),
                (store.settle_asynchronously, "settle_asynchronously"),
            ] {
                if is_given {
                    refuse!(
                        "`{key}` of a store is for sendoff's own tables, and [table] is the host's: leave it out"
                    );
                }
            }
        }
        if self.retention.published.is_some() || self.retention.dead.is_some() {
            refuse!(
                "[retention] deletes from sendoff's own tables, and the rows of [table] are the host's: leave it out"
            );
        }
        for (name, target) in &self.targets {
            table::serves(&target.target(name, &self.relay)).map_err(Refused)?;
        }
        if self.targets.len() > 1 && !table.has_target() {
            refuse!(
                "[table] does not say which target a row is for: name the column with `target`, or give one target only"
            );
        }
        Ok(())
    }

    /// The outboxes, by name; the only one has none.
    pub(crate) fn outboxes(&self) -> Result<Vec<(Option<&str>, &StoreConfig)>> {
        match (&self.store, self.stores.is_empty()) {
            (Some(_), false) => refuse!("give `store` or `stores`, not both"),
            (Some(store), true) => Ok(vec![(None, store)]),
            (None, false) => {
                Ok(self.stores.iter().map(|(name, store)| (Some(name.as_str()), store)).collect())
            }
            (None, true) => refuse!("it has no `store`: give [store] with its url"),
        }
    }

    /// What a relay is told of each target, with its sink.
    pub(crate) fn targets(&self) -> Result<Vec<(TargetConfig, &SinkConfig)>> {
        if self.targets.is_empty() {
            refuse!("it has no target: give [targets.default] with its sink");
        }
        self.targets
            .iter()
            .map(|(name, options)| Ok((options.target(name, &self.relay), &options.sink)))
            .collect()
    }
}

impl TargetOptions {
    fn target(&self, name: &str, relay: &RelayConfig) -> TargetConfig {
        let usual = TargetConfig::default();
        let size = |number: Option<NonZeroU32>, usual: usize| {
            number.map_or(usual, |number| usize::try_from(number.get()).unwrap_or(usize::MAX))
        };
        TargetConfig {
            target: name.to_owned(),
            name: relay.name.clone(),
            lease: self.lease.unwrap_or(relay.lease).into(),
            workers: size(self.workers.or(Some(relay.workers)), usual.workers),
            lanes: self.lanes.map_or(usual.lanes, Lanes::into),
            exclusive: self.exclusive,
            batch: size(self.batch, usual.batch),
            window: self.window.map_or(usual.window, NonZeroU32::get),
            bytes: self.bytes.map_or(usual.bytes, NonZeroU64::get),
            concurrency: size(self.concurrency, usual.concurrency),
            rate: self.rate.map(NonZeroU32::get),
            publish_timeout: self.publish_timeout.map_or(usual.publish_timeout, Span::into),
            retry: RetryPolicy {
                base: self.retry.base.map_or(usual.retry.base, Span::into),
                cap: self.retry.cap.map_or(usual.retry.cap, Span::into),
                attempts: self.retry.attempts.map_or(usual.retry.attempts, NonZeroU32::get),
            },
            on_exhausted: match self.on_exhausted {
                Exhausted::Skip => OnExhausted::Skip,
                Exhausted::Block => OnExhausted::Block,
                Exhausted::Divert => OnExhausted::Divert,
            },
            breaker: BreakerConfig {
                probe: self.breaker.probe.map_or(usual.breaker.probe, Span::into),
                probe_max: self.breaker.probe_max.map_or(usual.breaker.probe_max, Span::into),
            },
            poll_max: self.poll_max.map_or(usual.poll_max, Span::into),
            grace: relay.grace.into(),
        }
    }
}
