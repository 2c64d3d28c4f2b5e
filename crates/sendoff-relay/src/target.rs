//! One target: what its workers share, and the pipeline of each.
//!
//! claim → publish → settle: a stage each, joined by bounded channels, so that the next events are read and the last ones settled
//! while these are published.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use sendoff::outbox::{Claimed, Engine, Outcome, Receipt, Source, Stats};
use sendoff::{Sink, StoreError};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use crate::breaker::Breaker;
use crate::config::TargetConfig;
use crate::figures::{Counter, Counters};
use crate::metrics::Histogram;
use crate::mode::{Mode, ModeSwitch};
use crate::pause::Pause;
use crate::poll::Bell;
use crate::pulse::Pulse;
use crate::rate::Rate;
use crate::{claim, publish, settle};

/// What the workers of a target share.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) config: TargetConfig,
    pub(crate) sink: Arc<dyn Sink>,
    pub(crate) counters: Counters,
    /// How long calls of the sink take.
    pub(crate) publish_duration: Histogram,
    /// How old events are when they are delivered.
    pub(crate) delivery_age: Histogram,
    pub(crate) mode: ModeSwitch,
    pub(crate) bell: Bell,
    breaker: Mutex<Breaker>,
    rate: Mutex<Option<Rate>>,
    /// Its workers, while they live.
    loops: Mutex<Vec<Weak<Loop>>>,
    /// What they have in common.
    relay: Uuid,
    /// One for each of them.
    pulses: Vec<Pulse>,
    /// The store failed when it was last asked.
    is_store_failing: AtomicBool,
}

impl Target {
    pub(crate) fn new(config: TargetConfig, sink: Arc<dyn Sink>, bell: Bell) -> Self {
        let now = Instant::now();
        Self {
            breaker: Mutex::new(Breaker::new(config.breaker)),
            rate: Mutex::new(config.rate.map(|rate| Rate::new(rate, now))),
            pulses: (0..config.workers).map(|_| Pulse::new(now)).collect(),
            is_store_failing: AtomicBool::new(false),
            publish_duration: Histogram::default(),
            delivery_age: Histogram::default(),
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

    /// What its workers have seen, all together.
    pub(crate) fn stats(&self) -> Stats {
        let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        let each = loops.iter().filter_map(Weak::upgrade).map(|stages| stages.worker.stats());
        each.fold(Stats::default(), |sum, stats| Stats {
            taken: sum.taken + stats.taken,
            lost: sum.lost + stats.lost,
            ..sum
        })
    }

    /// Whether one of its workers has not got on for so long. One that is paused waits for ever, and one that stops has its own limit.
    pub(crate) fn is_stuck(&self, after: Duration) -> bool {
        self.mode.get() == Mode::Run && self.pulses.iter().any(|pulse| pulse.age() > after)
    }

    /// The store failed, and is asked again.
    pub(crate) fn store_failed(&self, what: &str, error: &StoreError) {
        self.counters.store_errors.add(1);
        self.is_store_failing.store(true, Ordering::Relaxed);
        tracing::warn!(target_name = self.config.target, %error, "{what}; trying again");
    }

    pub(crate) fn store_answered(&self) {
        if self.is_store_failing.swap(false, Ordering::Relaxed) {
            tracing::info!(target_name = self.config.target, "the store answers again");
        }
    }

    pub(crate) fn has_workers(&self) -> bool {
        let loops = self.loops.lock().unwrap_or_else(PoisonError::into_inner);
        loops.iter().any(|known| known.strong_count() > 0)
    }

    fn beat(&self, number: usize) {
        if let Some(pulse) = self.pulses.get(number) {
            pulse.beat();
        }
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
    /// Which one of its target's it is.
    number: usize,
    pub(crate) target: Arc<Target>,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) worker: Box<dyn Engine>,
    /// Something was settled: there is room again, and keys are free.
    pub(crate) settled: Notify,
    /// The last claim was full, and the next one is under way.
    pub(crate) more_to_come: watch::Sender<bool>,
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

    /// It gets on.
    pub(crate) fn beat(&self) {
        self.target.beat(self.number);
    }
}

/// Runs one worker until the target stops.
pub(crate) async fn run(
    target: Arc<Target>,
    source: Arc<dyn Source>,
    number: usize,
) -> Result<(), StoreError> {
    let Some(worker) = start(&target, &*source, number).await else { return Ok(()) };
    let grace = target.config.grace;
    let stages = Arc::new(Loop {
        number,
        target,
        source,
        worker,
        settled: Notify::new(),
        more_to_come: watch::Sender::new(false),
        unsettled: Counter::default(),
        nanos_per_event: Counter::default(),
        noted_down: Mutex::new(Some(false)),
    });
    stages.target.add(&stages);
    // One claim waits while calls are filled with those before; outcomes may pile up only as far as the window.
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
async fn start(target: &Target, source: &dyn Source, number: usize) -> Option<Box<dyn Engine>> {
    let mut pause = Pause::default();
    loop {
        target.beat(number);
        match source.start(target.config.worker(target.relay)).await {
            Ok(worker) => return Some(worker),
            Err(error) => target.store_failed("the worker could not start", &error),
        }
        tokio::select! {
            biased;
            _ = target.mode.wait_for(|mode| mode == Mode::Stop) => return None,
            () = pause.wait() => {}
        }
    }
}
