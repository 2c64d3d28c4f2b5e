//! One target: what its workers share, and the pipeline of each.
//!
//! claim → parcels → publish → outcomes → settle: a stage each, joined by bounded channels, so that the next events are read and the last ones settled
//! while these are published.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sendoff::outbox::{Claimed, Outcome, Receipt, Store, Worker};
use sendoff::{Sink, StoreError};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use crate::breaker::Breaker;
use crate::config::TargetConfig;
use crate::figures::{Counter, Counters};
use crate::mode::{Mode, ModeSwitch};
use crate::pause::Pause;
use crate::poll::Bell;
use crate::rate::Rate;
use crate::{claim, publish, settle};

/// What the workers of a target share.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) config: TargetConfig,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) counters: Counters,
    pub(crate) mode: ModeSwitch,
    pub(crate) bell: Bell,
    breaker: Mutex<Breaker>,
    rate: Mutex<Option<Rate>>,
    /// Its workers, while they live.
    loops: Mutex<Vec<Weak<Loop>>>,
    /// What they have in common.
    relay: Uuid,
}

impl Target {
    pub(crate) fn new(config: TargetConfig, sink: Arc<dyn Sink>, bell: Bell) -> Self {
        let now = Instant::now();
        Self {
            breaker: Mutex::new(Breaker::new(config.breaker)),
            rate: Mutex::new(config.rate.map(|rate| Rate::new(rate, now))),
            counters: Counters::default(),
            mode: ModeSwitch::default(),
            loops: Mutex::default(),
            relay: Uuid::new_v4(),
            config,
            sink,
            bell,
        }
    }

    pub(crate) fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many lanes each worker has.
    pub(crate) fn lanes(&self) -> Vec<usize> {
        let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        loops.iter().filter_map(Weak::upgrade).map(|stages| stages.worker.lanes().len()).collect()
    }

    pub(crate) fn has_workers(&self) -> bool {
        let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        loops.iter().any(|known| known.strong_count() > 0)
    }

    fn add(&self, stages: &Arc<Loop>) {
        let mut loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        loops.retain(|known| known.strong_count() > 0);
        loops.push(Arc::downgrade(stages));
    }

    pub(crate) fn rate(&self) -> MutexGuard<'_, Option<Rate>> {
        self.rate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one worker's stages share.
#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) target: Arc<Target>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) worker: Worker,
    /// Something was settled: there is room again, and keys are free.
    pub(crate) settled: Notify,
    /// Events that are published, or not, and whose outcome is not written yet.
    pub(crate) unsettled: Counter,
    /// How long an event takes to publish, lately; 0: not known.
    pub(crate) nanos_per_event: Counter,
    /// Whether it is written down that the sink is down; none: that is not known.
    noted_down: Mutex<Option<bool>>,
}

/// What was decided about an event, with the payload bytes that are no longer held for it.
pub(crate) type Decided = (Receipt, Outcome, u64);

impl Loop {
    pub(crate) fn noted_down(&self) -> MutexGuard<'_, Option<bool>> {
        self.noted_down.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn bytes_of(claimed: &Claimed) -> u64 {
        claimed.event.payload.len() as u64
    }
}

/// Runs one worker until the target stops.
pub(crate) async fn run(target: Arc<Target>, store: Arc<dyn Store>) -> Result<(), StoreError> {
    let Some(worker) = start(&target, &store).await else { return Ok(()) };
    let grace = target.config.grace;
    let stages = Arc::new(Loop {
        target,
        store,
        worker,
        settled: Notify::new(),
        unsettled: Counter::default(),
        nanos_per_event: Counter::default(),
        noted_down: Mutex::new(Some(false)),
    });
    stages.target.add(&stages);
    // One claim waits while one is packed; outcomes may pile up only as far as the window.
    let (claims, claimed) = mpsc::channel::<Vec<Claimed>>(1);
    let (outcomes, decided) = mpsc::channel::<Vec<Decided>>(64);
    // Dropped with this future: a relay that is dropped publishes nothing more.
    let mut later_stages = JoinSet::new();
    let publishing = later_stages.spawn(publish::run(Arc::clone(&stages), claimed, outcomes));
    later_stages.spawn(settle::run(Arc::clone(&stages), decided));
    claim::run(&stages, claims).await;
    let ended = async { while later_stages.join_next().await.is_some() {} };
    let deadline = Instant::now() + grace;
    if tokio::time::timeout_at(deadline, ended).await.is_err() {
        // Whatever is still on its way is given up here, and delivered again by others.
        publishing.abort();
        tracing::warn!(
            target_name = stages.target.config.target,
            "not all events in flight were settled in time"
        );
    }
    let left = deadline.saturating_duration_since(Instant::now());
    stages.worker.stop(left.min(grace)).await?;
    Ok(())
}

/// A store that is not there yet is waited for. None: the relay stopped meanwhile.
async fn start(target: &Target, store: &Arc<dyn Store>) -> Option<Worker> {
    let mut pause = Pause::default();
    loop {
        match Worker::start(Arc::clone(store), target.config.worker(target.relay)).await {
            Ok(worker) => return Some(worker),
            Err(error) => {
                target.counters.store_errors.add(1);
                tracing::warn!(%error, "the worker could not start; trying again");
            }
        }
        tokio::select! {
            biased;
            _ = target.mode.wait_for(|mode| mode == Mode::Stop) => return None,
            () = pause.wait() => {}
        }
    }
}
