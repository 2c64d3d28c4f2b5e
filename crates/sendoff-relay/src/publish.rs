//! The second stage: publishes parcels, a few at a time, and says what became of each event.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sendoff::outbox::{Claimed, Outcome, Receipt};
use sendoff::{Capabilities, Delivery};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::runs::{Parcel, parcels};
use crate::target::{Decided, Loop};

/// Publishes what is claimed, until nothing more is.
pub(crate) async fn run(
    stages: Arc<Loop>,
    mut claimed: mpsc::Receiver<Vec<Claimed>>,
    outcomes: mpsc::Sender<Vec<Decided>>,
) {
    let capabilities = stages.target.sink.capabilities();
    let calls = Arc::new(Semaphore::new(stages.target.config.concurrency));
    // Dropped with this stage: what is on its way then is given up.
    let mut under_way = JoinSet::new();
    while let Some(events) = claimed.recv().await {
        for parcel in parcels(events, &capabilities) {
            let Ok(call) = Arc::clone(&calls).acquire_owned().await else { return };
            let (stages, outcomes) = (Arc::clone(&stages), outcomes.clone());
            under_way.spawn(async move {
                publish(&stages, parcel, &capabilities, &outcomes).await;
                drop(call);
            });
        }
        while under_way.try_join_next().is_some() {}
    }
    while under_way.join_next().await.is_some() {}
}

/// Sends a parcel, wave by wave.
async fn publish(
    stages: &Loop,
    mut parcel: Parcel,
    capabilities: &Capabilities,
    outcomes: &mpsc::Sender<Vec<Decided>>,
) {
    let mut stopped = HashSet::new();
    let mut is_down = false;
    loop {
        let mut untried = Vec::new();
        let wave = parcel.wave(capabilities, &stopped, &mut untried);
        let is_last = wave.is_empty();
        let mut decided: Vec<Decided> = untried.iter().map(|event| release(stages, event)).collect();
        if is_down || !stages.target.breaker().is_closed() {
            // Nothing more is sent to a sink that is down.
            is_down = true;
            decided.extend(wave.iter().map(|event| release(stages, event)));
        } else {
            decided.extend(send(stages, wave, &mut stopped).await);
        }
        stages.unsettled.add(decided.len() as u64);
        let delivered: Vec<Receipt> = delivered(&decided).collect();
        if !decided.is_empty() && outcomes.send(decided).await.is_err() {
            return;
        }
        // Only now: their settlements are in line before those of what comes next of their keys.
        stages.worker.delivered(&delivered);
        if is_last {
            return;
        }
    }
}

/// One call of the sink. Keys of which an event failed are added to `stopped`.
async fn send(stages: &Loop, wave: Vec<Claimed>, stopped: &mut HashSet<String>) -> Vec<Decided> {
    let target = &stages.target;
    let begun = Instant::now();
    let mut decided = Vec::with_capacity(wave.len());
    let (wave, late): (Vec<_>, Vec<_>) =
        wave.into_iter().partition(|event| stages.time_left(event, begun).is_some());
    for event in &late {
        // The lane may be another's before the sink has answered.
        target.counters.late.add(1);
        stopped.extend(event.event.key.clone());
        decided.push(release(stages, event));
    }
    if wave.is_empty() {
        return decided;
    }
    let left = wave.iter().filter_map(|event| stages.time_left(event, begun)).min().unwrap_or_default();
    let timeout = target.config.publish_timeout.min(left);
    let answered = tokio::time::timeout(timeout, target.sink.publish(&wave)).await;
    stages.beat();
    stages.published(wave.len(), begun.elapsed());
    target.publish_duration.observe(begun.elapsed());
    let mut deliveries = answered.unwrap_or_else(|_| {
        target.counters.timeouts.add(1);
        let error = format!("the sink did not answer within {timeout:?}");
        vec![Delivery::retry(error); wave.len()]
    });
    deliveries.truncate(wave.len());
    let tried = deliveries.len();
    let mut rest = wave;
    let untried = rest.split_off(tried);
    target.counters.unanswered.add(untried.len() as u64);
    note_health(stages, &deliveries);
    note_age(stages, &rest, &deliveries);
    for (event, delivery) in rest.iter().zip(deliveries) {
        if delivery != Delivery::Delivered {
            stopped.extend(event.event.key.clone());
        }
        decided.push(decide(stages, event, delivery));
    }
    for event in &untried {
        stopped.extend(event.event.key.clone());
        decided.push(release(stages, event));
    }
    decided
}

fn delivered(decided: &[Decided]) -> impl Iterator<Item = Receipt> {
    decided.iter().filter(|(_, outcome, _)| *outcome == Outcome::Published).map(|(receipt, ..)| *receipt)
}

fn note_health(stages: &Loop, deliveries: &[Delivery]) {
    let target = &stages.target;
    let down = deliveries.iter().find_map(|delivery| match delivery {
        Delivery::Down { error } => Some(error),
        _ => None,
    });
    let mut breaker = target.breaker();
    if deliveries.contains(&Delivery::Delivered) {
        breaker.delivered();
    }
    if let Some(error) = down
        && breaker.went_down(error, Instant::now())
    {
        target.counters.down.add(1);
        tracing::warn!(target_name = target.config.target, error, "the sink is down; its events wait");
    }
}

/// How old the events are that were delivered. A clock that is behind the database's makes them new.
fn note_age(stages: &Loop, events: &[Claimed], deliveries: &[Delivery]) {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let delivered = events.iter().zip(deliveries).filter(|(_, delivery)| **delivery == Delivery::Delivered);
    for (event, _) in delivered {
        let written = u64::try_from(event.event.created_at.as_micros()).unwrap_or_default();
        stages.target.delivery_age.observe(now.saturating_sub(Duration::from_micros(written)));
    }
}

fn decide(stages: &Loop, event: &Claimed, delivery: Delivery) -> Decided {
    let target = &stages.target;
    let outcome = target.config.retry.outcome(&event.event, delivery, fastrand::f64());
    let counters = &target.counters;
    match &outcome {
        Outcome::Published => {}
        Outcome::Retry { .. } => counters.retried.add(1),
        Outcome::GiveUp { .. } => counters.given_up.add(1),
        Outcome::Release => counters.released.add(1),
    }
    (event.receipt(), outcome, Loop::bytes_of(event))
}

fn release(stages: &Loop, event: &Claimed) -> Decided {
    stages.target.counters.released.add(1);
    (event.receipt(), Outcome::Release, Loop::bytes_of(event))
}

impl Loop {
    /// How long an event may still be on its way; none: it may not be sent any more.
    fn time_left(&self, event: &Claimed, now: Instant) -> Option<Duration> {
        let deadline = self.worker.deadline(event.token)?;
        Some(deadline.saturating_duration_since(now)).filter(|left| !left.is_zero())
    }
}
