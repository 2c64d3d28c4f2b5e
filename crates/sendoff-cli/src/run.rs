//! `sendoff run`: the relay as a program.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use futures_util::FutureExt as _;
use sendoff::DEFAULT_TARGET;
use sendoff::outbox::{Inspect, LaneSet};
use sendoff::stores::postgres::Listening;
use sendoff_relay::{Relay, RelayHandle, TargetConfig};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::args::RunArgs;
use crate::config::{Config, RetentionConfig, SinkConfig};
use crate::exit::{Refused, refuse};
use crate::place::Place;
use crate::retention;
use crate::site::{History, Site};
use crate::wire;

/// A second signal ends it at once, with this.
const INTERRUPTED: i32 = 130;

/// Relays until it is told to stop.
pub(crate) async fn run(args: &RunArgs) -> Result<()> {
    let plan = Plan::of(args)?;
    // What is wrong by itself is said before any server is asked.
    for (config, sink) in &plan.targets {
        config.check().map_err(Refused)?;
        wire::configured(sink).with_context(|| format!("target {:?}", config.target))?;
    }
    let mut relays = Vec::new();
    for place in &plan.places {
        relays.push(Prepared::new(place, &plan).await?);
    }
    // Before it is said to run: who hears that may signal at once.
    let stop = stop_signal()?.shared();
    for relay in &relays {
        relay.tell();
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
        Ok(Self { places, targets, retention })
    }
}

/// A relay of one outbox that is about to run.
struct Prepared {
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
        let history = if plan.retention.published.is_some() { History::Kept } else { History::Dropped };
        let opened = site.store_with(history).await;
        let store = opened.context("the outbox could not be opened (`sendoff migrate` makes its tables)")?;
        let mut relay = Relay::new(store);
        let of_store = place.name.as_ref().map(|name| format!(" of store {name:?}")).unwrap_or_default();
        let mut told = Vec::new();
        for (config, sink) in &plan.targets {
            let named = || format!("target {:?}", config.target);
            let shown = wire::without_secret(&sink.url.read("url").with_context(named)?);
            let sink = wire::configured(sink).with_context(named)?;
            sink.check().await.with_context(named)?;
            let lanes = told_of_lanes(config);
            told.push(format!("relaying target {:?}{of_store} to {shown}{lanes}", config.target));
            told.push(config.repeats(&sink.capabilities()).to_string());
            relay = relay.target(config.clone(), sink);
        }
        let handle = relay.handle();
        let _listening = match place.listen {
            true => Some(site.listen(handle.bell()).await?),
            false => None,
        };
        Ok(Self { relay, handle, inspect: site.inspect().await?, told, _listening })
    }

    fn tell(&self) {
        for line in &self.told {
            eprintln!("{line}");
        }
    }

    async fn run(self, retention: RetentionConfig, stop: impl Future<Output = ()>) -> Result<()> {
        let sweeping = tokio::spawn(retention::sweep(self.inspect, retention));
        let ended = self.relay.run(stop).await;
        sweeping.abort();
        for (target, figures) in self.handle.figures() {
            eprintln!("target {target:?}: {} published, {} given up", figures.published, figures.given_up);
        }
        Ok(ended?)
    }
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
                    eprintln!("stopping: finishing what is in flight; a second signal quits at once");
                    let _ = first.send(());
                }
                None => std::process::exit(INTERRUPTED),
            }
        }
    });
    Ok(async { stopped.await.unwrap_or_default() })
}
