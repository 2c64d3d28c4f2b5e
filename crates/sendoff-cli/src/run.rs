//! `sendoff run`: the relay as a program.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures_util::FutureExt as _;
use futures_util::future::try_join_all;
use sendoff::outbox::{Inspect, LaneSet};
use sendoff::stores::postgres::Listening;
use sendoff::{DEFAULT_TARGET, Sink, SinkError};
use sendoff_relay::{Figures, Relay, RelayHandle, TargetConfig};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::admin::{self, Address, Answers, Watch};
use crate::args::RunArgs;
use crate::config::{Config, RetentionConfig, SinkConfig, TelemetryConfig};
use crate::exit::{Refused, refuse};
use crate::place::Place;
use crate::retention;
use crate::site::{Settling, Site};
use crate::table::Opened;
use crate::telemetry;
use crate::wire;

/// What the store is called in figures, if there is only one.
const ONLY_STORE: &str = "default";

/// A sink that has not answered by then is taken to be away.
const CHECK_TIMEOUT: Duration = Duration::from_secs(15);

/// A second signal ends it at once, with this.
const INTERRUPTED: i32 = 130;

/// Relays until it is told to stop.
pub(crate) async fn run(args: &RunArgs) -> Result<()> {
    let plan = Plan::of(args)?;
    telemetry::start(&plan.telemetry)?;
    // What is wrong by itself is said before any server is asked.
    for (config, sink) in &plan.targets {
        config.check().map_err(Refused)?;
        wire::configured(sink).with_context(|| format!("target {:?}", config.target))?;
    }
    let listener = match &plan.admin {
        Some(address) => Some(address.bind().await?),
        None => None,
    };
    let mut relays = Vec::new();
    for place in &plan.places {
        relays.push(Prepared::new(place, &plan).await?);
    }
    // Before it is said to run: who hears that may signal at once.
    let stop = stop_signal()?.boxed().shared();
    for relay in &relays {
        relay.tell();
    }
    // Ends with this, after the relays: who drains is watched too.
    let mut beside = JoinSet::new();
    if let (Some(listener), Some(address)) = (listener, plan.admin) {
        let watches = relays.iter().map(|relay| relay.watch(plan.ready_within)).collect();
        let answers = Arc::new(Answers::new(watches, address.token, stop.clone()));
        telemetry::say(&format!("figures on http://{}/metrics", listener.local_addr()?));
        let watched = Arc::clone(&answers);
        beside.spawn(async move { watched.watch().await });
        beside.spawn(admin::serve(listener, answers));
    }
    let mut running = JoinSet::new();
    for relay in relays {
        running.spawn(relay.run(plan.retention, stop.clone()));
    }
    let mut ended = Ok(());
    while let Some(one) = running.join_next().await {
        ended = ended.and(one?);
    }
    ended
}

/// What is to be relayed, and where from.
struct Plan {
    places: Vec<Place>,
    targets: Vec<(TargetConfig, SinkConfig)>,
    retention: RetentionConfig,
    admin: Option<Address>,
    ready_within: Duration,
    telemetry: TelemetryConfig,
}

impl Plan {
    /// As the configuration says, and the command line over it.
    fn of(args: &RunArgs) -> Result<Self> {
        let config = args.store.config.as_deref().map(Config::read).transpose()?;
        let mut places = Place::all(&args.store, config.as_ref())?;
        for place in &mut places {
            place.listen |= args.listen;
        }
        let retention = config.as_ref().map(|config| config.retention).unwrap_or_default();
        let mut targets = match (&args.sink, &config) {
            (Some(sink), _) => {
                let target = args.target.as_deref().unwrap_or(DEFAULT_TARGET);
                let usual = TargetConfig { name: "sendoff".to_owned(), ..TargetConfig::new(target) };
                vec![(usual, SinkConfig::of_url(sink))]
            }
            (None, Some(config)) => {
                config.targets()?.into_iter().map(|(target, sink)| (target, sink.clone())).collect()
            }
            (None, None) => refuse!("where to? Give --sink URL, or --config FILE with its targets"),
        };
        if let Some(wanted) = &args.target {
            targets.retain(|(target, _)| target.target == *wanted);
            if targets.is_empty() {
                refuse!("there is no target {wanted:?} in the configuration");
            }
        }
        for (target, _) in &mut targets {
            target.name = args.name.clone().unwrap_or(std::mem::take(&mut target.name));
            target.lanes = args.lanes.unwrap_or(target.lanes);
            target.exclusive |= args.exclusive;
            target.workers = args.workers.map_or(target.workers, usize::from);
            target.lease = args.lease.map_or(target.lease, Into::into);
        }
        let Config { admin, mut telemetry, .. } = config.unwrap_or_default();
        telemetry.log = args.log.clone().unwrap_or(telemetry.log);
        telemetry.format = args.log_format.unwrap_or(telemetry.format);
        let ready_within = admin.ready_within.into();
        let admin = Address::of(&admin, args.admin)?;
        Ok(Self { places, targets, retention, admin, ready_within, telemetry })
    }
}

/// A relay of one outbox that is about to run.
struct Prepared {
    /// What it is called.
    store: String,
    relay: Relay,
    handle: RelayHandle,
    inspect: Arc<dyn Inspect>,
    /// What people are told of each target.
    told: Vec<String>,
    _listening: Option<Listening>,
}

impl Prepared {
    async fn new(place: &Place, plan: &Plan) -> Result<Self> {
        let site = Site::at(place).await?;
        let (mut relay, inspect) = source(place, plan, &site).await?;
        let of_table = place.table.as_ref().map(|table| format!(" of table {}", table.name()));
        let of_store = place.name.as_ref().map(|name| format!(" of store {name:?}")).unwrap_or_default();
        let mut told = Vec::new();
        let mut sinks = Vec::new();
        for (config, sink) in &plan.targets {
            let named = || format!("target {:?}", config.target);
            let shown = wire::without_secret(&sink.url.read("url").with_context(named)?);
            sinks.push((config, shown, wire::configured(sink).with_context(named)?));
        }
        // At once: one that does not answer is waited for by itself alone.
        try_join_all(sinks.iter().map(|(config, _, sink)| check(&config.target, &**sink))).await?;
        for (config, shown, sink) in sinks {
            let lanes = told_of_lanes(config);
            let of_table = of_table.as_deref().unwrap_or_default();
            told.push(format!("relaying target {:?}{of_store}{of_table} to {shown}{lanes}", config.target));
            told.push(config.repeats(&sink.capabilities()).to_string());
            relay = relay.target(config.clone(), sink);
        }
        let handle = relay.handle();
        let _listening = match place.listen {
            true => Some(site.listen(handle.bell()).await?),
            false => None,
        };
        let store = place.name.clone().unwrap_or_else(|| ONLY_STORE.to_owned());
        Ok(Self { store, relay, handle, inspect, told, _listening })
    }

    fn tell(&self) {
        for line in &self.told {
            telemetry::say(line);
        }
    }

    fn watch(&self, ready_within: Duration) -> Watch {
        Watch::new(&self.store, self.handle.clone(), Arc::clone(&self.inspect), ready_within)
    }

    async fn run(self, retention: RetentionConfig, stop: impl Future<Output = ()>) -> Result<()> {
        let sweeping = tokio::spawn(retention::sweep(self.inspect, retention));
        let ended = self.relay.run(stop).await;
        sweeping.abort();
        for (target, figures) in self.handle.figures() {
            let Figures { published, given_up, .. } = figures;
            telemetry::say(&format!("target {target:?}: {published} published, {given_up} given up"));
        }
        Ok(ended?)
    }
}

/// What is relayed, and what operators see of it: a host's own table, or sendoff's own.
async fn source(place: &Place, plan: &Plan, site: &Site) -> Result<(Relay, Arc<dyn Inspect>)> {
    if let Some(table) = &place.table {
        if place.listen {
            refuse!(
                "there is nobody to listen to: [table] is the host's own, and `listen` is for sendoff's own tables"
            );
        }
        let targets: Vec<&TargetConfig> = plan.targets.iter().map(|(target, _)| target).collect();
        let opened = Opened::of_workers(site).await?;
        let rows = table.for_targets(&targets)?.open(&opened).await?;
        return Ok((Relay::of(Arc::new(rows.clone())), Arc::new(rows)));
    }
    let settling = Settling {
        keeps_published: plan.retention.published.is_some(),
        is_asynchronous: place.settle_asynchronously,
    };
    let opened = site.store_with(settling).await;
    let store = opened.context("the outbox could not be opened (`sendoff migrate` makes its tables)")?;
    Ok((Relay::new(store), site.inspect().await?))
}

/// Which lanes it has, if not the usual.
fn told_of_lanes(config: &TargetConfig) -> String {
    let lanes = match config.lanes {
        LaneSet::ALL => String::new(),
        lanes => format!(", only lanes {lanes}"),
    };
    let exclusive = if config.exclusive { ", while no other exclusive relay does" } else { "" };
    format!("{lanes}{exclusive}")
}

/// Whether a sink can be used. One that is away is waited for, as one that goes away later is: its breaker opens with the first event.
async fn check(target: &str, sink: &dyn Sink) -> Result<()> {
    let answered = tokio::time::timeout(CHECK_TIMEOUT, sink.check()).await;
    let silent = |_| Err(SinkError::away("the sink", format!("no answer within {CHECK_TIMEOUT:?}")));
    match answered.unwrap_or_else(silent) {
        Err(error) if error.is_away => {
            tracing::warn!(target_name = target, %error, "the sink is away; its events wait until it is there");
            Ok(())
        }
        checked => checked.with_context(|| format!("target {target:?}")),
    }
}

/// Ready with the first SIGTERM or SIGINT. The second ends the process.
fn stop_signal() -> Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("SIGINT")?;
    let (first, stopped) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let mut first = Some(first);
        loop {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            match first.take() {
                Some(first) => {
                    telemetry::say("stopping: finishing what is in flight; a second signal quits at once");
                    let _ = first.send(());
                }
                None => std::process::exit(INTERRUPTED),
            }
        }
    });
    Ok(async { stopped.await.unwrap_or_default() })
}
