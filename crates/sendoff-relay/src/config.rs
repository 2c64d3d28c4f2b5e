//! How a target is served.

use std::time::Duration;

use sendoff::DEFAULT_TARGET;
use sendoff::outbox::{LaneSet, OnExhausted, WorkerConfig};

use uuid::Uuid;

use crate::breaker::BreakerConfig;
use crate::retry::RetryPolicy;

/// How a target is served.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetConfig {
    /// Whose events they are.
    pub target: String,
    /// What people call the worker.
    pub name: String,
    /// How long a lane's lease lasts.
    pub lease: Duration,
    /// So many workers share the lanes, each with its own claims.
    pub workers: usize,
    /// These lanes and no others; relays that may have the same lanes share them.
    pub lanes: LaneSet,
    /// Of the exclusive relays with the same lanes one works, the others stand by: the next takes over at once when it stops, and when its leases end, or it is
    /// provably gone, if it is lost. Such a relay has one worker.
    pub exclusive: bool,
    /// At most so many events are claimed at a time.
    pub batch: usize,
    /// At most so many events of a worker are claimed and not settled.
    pub window: u32,
    /// At most about so many payload bytes of a worker are in memory.
    pub bytes: u64,
    /// So many calls of the sink at a time, for each worker.
    pub concurrency: usize,
    /// At most so many events a second, over all workers of this process; none: as many as there are.
    pub rate: Option<u32>,
    /// A call of the sink that takes longer has failed.
    pub publish_timeout: Duration,
    /// When a failed event is tried again.
    pub retry: RetryPolicy,
    /// What becomes of an event that is given up, and of its key.
    pub on_exhausted: OnExhausted,
    /// What is done while the sink is down.
    pub breaker: BreakerConfig,
    /// An idle worker looks for events so often at least.
    pub poll_max: Duration,
    /// When the relay stops, what is in flight has so long to be settled.
    pub grace: Duration,
}

impl Default for TargetConfig {
    fn default() -> Self {
        Self {
            target: DEFAULT_TARGET.to_owned(),
            name: "relay".to_owned(),
            lease: Duration::from_secs(30),
            workers: 1,
            lanes: LaneSet::ALL,
            exclusive: false,
            batch: 500,
            window: 2_000,
            bytes: 32 * 1024 * 1024,
            concurrency: 4,
            rate: None,
            publish_timeout: Duration::from_secs(10),
            retry: RetryPolicy::default(),
            on_exhausted: OnExhausted::default(),
            breaker: BreakerConfig::default(),
            poll_max: Duration::from_millis(250),
            grace: Duration::from_secs(10),
        }
    }
}

impl TargetConfig {
    /// The defaults, for this target.
    pub fn new(target: impl Into<String>) -> Self {
        Self { target: target.into(), ..Self::default() }
    }

    /// Whether a relay can work so. It checks that itself before it does anything.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        let zero = [
            (self.workers == 0, "workers"),
            (self.batch == 0, "batch"),
            (self.concurrency == 0, "concurrency"),
            (self.rate == Some(0), "rate"),
            (self.bytes == 0, "bytes"),
            (self.publish_timeout.is_zero(), "publish_timeout"),
            (self.poll_max.is_zero(), "poll_max"),
        ];
        if let Some((_, name)) = zero.iter().find(|(is_zero, _)| *is_zero) {
            return Err(format!("target {:?}: {name} must be more than 0", self.target));
        }
        if self.lanes.is_empty() {
            return Err(format!("target {:?}: lanes must not be empty", self.target));
        }
        if self.exclusive && self.workers > 1 {
            return Err(format!(
                "target {:?}: exclusive means one worker, and workers is {}: set it to 1; concurrency says how much it does at a time",
                self.target, self.workers
            ));
        }
        self.retry.check().map_err(|error| format!("target {:?}: {error}", self.target))
    }

    /// For each worker of this relay.
    pub(crate) fn worker(&self, relay: Uuid) -> WorkerConfig {
        WorkerConfig {
            name: self.name.clone(),
            target: self.target.clone(),
            lease: self.lease,
            window: self.window,
            // Half of it for what is read next while the other half is on its way.
            bytes: (self.bytes / 2).max(1),
            crash_pause: self.publish_timeout,
            on_exhausted: self.on_exhausted,
            lanes: self.lanes,
            exclusive: self.exclusive,
            relay: Some(relay),
            ..WorkerConfig::default()
        }
    }
}
