//! The relay: claims events from an outbox, publishes them to sinks, settles what became of them. It is embedded in a service, or is the program `sendoff run`.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # async fn example(store: Arc<dyn sendoff::outbox::Store>, sink: Arc<dyn sendoff::Sink>) -> Result<(), sendoff_relay::RelayError> {
//! use sendoff_relay::{Relay, TargetConfig};
//!
//! let relay = Relay::new(store).target(TargetConfig::new("default"), sink);
//! let handle = relay.handle();
//! # async fn told_to_stop() {}
//! tokio::spawn(relay.run(told_to_stop()));
//! println!("{:?}", handle.figures());
//! # Ok(())
//! # }
//! ```
//!
//! - **One loop, one breaker and one sink for each target.** A sink that is down spends no attempts, and holds up no other.
//! - **Claiming, publishing and settling overlap**, over bounded channels: memory is bounded whatever the backlog.
//! - **Order is the relay's business**: a key's next event is published when the one before was delivered, whatever the sink.
//! - **Retries** wait exponentially longer, by chance, up to a cap ([`RetryPolicy`]); an event may bring its own policy in the header [`RETRY_HEADER`].
//! - **Any number of relays** share an outbox: each has its share of the lanes, and hands it over when it stops.
//!
//! [`TargetConfig`] says how a target is served; [`RelayHandle`] watches and steers: figures, pause, resume, drain, and a [`Bell`] to ring after a commit.

mod breaker;
mod claim;
mod config;
mod figures;
pub mod metrics;
mod mode;
mod pause;
mod poll;
mod pool;
mod publish;
mod pulse;
mod rate;
mod repeats;
mod retry;
mod settle;
mod sizing;
mod target;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sendoff::outbox::{Source, Store};
use sendoff::{Sink, StoreError};
use tokio::task::JoinSet;

pub use breaker::BreakerConfig;
pub use config::TargetConfig;
pub use figures::Figures;
pub use poll::Bell;
pub use repeats::Repeats;
pub use retry::{RETRY_HEADER, RetryPolicy};

use self::mode::Mode;
use self::target::Target;

/// Why a relay did not run, or did not stop cleanly.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// It cannot work as configured.
    #[error("{0}")]
    Config(String),
    /// A worker could not give back its lanes: they go over when their leases end.
    #[error("a worker could not leave: {0}")]
    Leave(#[from] StoreError),
    /// A worker ended by a panic.
    #[error("a worker of the relay panicked: {0}")]
    Panicked(String),
}

/// Delivers an outbox's events: one loop, one breaker and one sink for each target, so that none holds up another.
#[derive(Debug)]
pub struct Relay {
    source: Arc<dyn Source>,
    targets: BTreeMap<String, Arc<Target>>,
    bell: Bell,
    wrong: Option<String>,
}

impl Relay {
    /// A relay without targets, for an outbox.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::of(Arc::new(store))
    }

    /// A relay without targets, for whatever events are claimed from.
    pub fn of(source: Arc<dyn Source>) -> Self {
        Self { source, targets: BTreeMap::new(), bell: Bell::default(), wrong: None }
    }

    /// Delivers this target's events to this sink.
    #[must_use]
    pub fn target(mut self, config: TargetConfig, sink: Arc<dyn Sink>) -> Self {
        let name = config.target.clone();
        let checked = config.check();
        let target = Arc::new(Target::new(config, sink, self.bell.clone()));
        let is_double = self.targets.insert(name.clone(), target).is_some();
        let double = is_double.then(|| format!("target {name:?} is configured twice"));
        self.wrong = self.wrong.or(double).or(checked.err());
        self
    }

    /// To watch and steer it while it runs.
    pub fn handle(&self) -> RelayHandle {
        RelayHandle { targets: self.targets.clone(), bell: self.bell.clone() }
    }

    /// Runs until `shutdown` is ready; then finishes what is in flight and gives its lanes back. Dropped, it stops at once, and others take over when its leases end.
    ///
    /// # Errors
    /// `Config` before anything is done; the others after everything has ended.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<(), RelayError> {
        if let Some(wrong) = self.wrong {
            return Err(RelayError::Config(wrong));
        }
        let mut loops = JoinSet::new();
        for target in self.targets.values() {
            let repeats = target.config.repeats(&target.sink.capabilities());
            tracing::debug!(target_name = target.config.target, "{repeats}");
            for number in 0..target.config.workers {
                loops.spawn(target::run(Arc::clone(target), Arc::clone(&self.source), number));
            }
        }
        shutdown.await;
        for target in self.targets.values() {
            target.mode.set(Mode::Stop);
        }
        let mut result = Ok(());
        while let Some(ended) = loops.join_next().await {
            result = result.and(match ended {
                Ok(left) => left.map_err(RelayError::from),
                Err(error) => Err(RelayError::Panicked(error.to_string())),
            });
        }
        for target in self.targets.values() {
            if let Err(error) = target.sink.close().await {
                tracing::warn!(%error, "a sink could not be closed");
            }
        }
        result
    }
}

/// Watches and steers a relay.
#[derive(Debug, Clone)]
pub struct RelayHandle {
    targets: BTreeMap<String, Arc<Target>>,
    bell: Bell,
}

impl RelayHandle {
    /// Ring it after a commit.
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// What was done, by target.
    pub fn figures(&self) -> BTreeMap<String, Figures> {
        self.targets.iter().map(|(name, target)| (name.clone(), target.counters.figures())).collect()
    }

    /// How many lanes each of a target's workers here has.
    pub fn lanes(&self, target: &str) -> Vec<usize> {
        self.targets.get(target).map(|target| target.lanes()).unwrap_or_default()
    }

    /// Whether a target's sink is taken to be there. None: there is no such target.
    pub fn is_up(&self, target: &str) -> Option<bool> {
        self.targets.get(target).map(|target| target.breaker().is_closed())
    }

    /// Targets of which a worker has not got on with anything for so long, not even with waiting: it has panicked, or hangs.
    pub fn stuck(&self, after: Duration) -> Vec<String> {
        let stuck = self.targets.iter().filter(|(_, target)| target.is_stuck(after));
        stuck.map(|(name, _)| name.clone()).collect()
    }

    /// Claims nothing more for a target, in this process. What is in flight is finished. False: there is no such target, or it stops.
    pub fn pause(&self, target: &str) -> bool {
        self.change(target, Mode::Run, Mode::Pause)
    }

    /// Goes on with a target.
    pub fn resume(&self, target: &str) -> bool {
        self.change(target, Mode::Pause, Mode::Run)
    }

    /// Pauses a target and waits until nothing of it is in flight here. False: there is no such target, or its workers ended before.
    pub async fn drain(&self, target: &str) -> bool {
        let Some(known) = self.targets.get(target) else { return false };
        self.pause(target);
        while known.counters.in_flight.get() > 0 {
            if !known.has_workers() {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        true
    }

    fn change(&self, target: &str, from: Mode, to: Mode) -> bool {
        let Some(target) = self.targets.get(target) else { return false };
        target.mode.change(from, to) == to
    }
}
