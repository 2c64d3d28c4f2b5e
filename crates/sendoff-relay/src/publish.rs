//! The second stage: calls the sink, a few calls at a time, and says what became of each event.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use sendoff::outbox::{Claimed, Outcome, Receipt, Token};
use sendoff::{Capabilities, Delivery};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::pool::{Call, KeyHash, Pool};
use crate::target::{Decided, Loop};

/// So long a call that is not half full waits for the next claim, if one is under way that will fill it.
const LINGER: Duration = Duration::from_millis(5);

/// Publishes what is claimed, until nothing more is.
pub(crate) async fn run(
    stages: Arc<Loop>,
    mut claimed: mpsc::Receiver<Vec<Claimed>>,
    outcomes: mpsc::Sender<Vec<Decided>>,
) {
    let mut publisher = Publisher::new(stages, outcomes);
    let mut is_open = true;
    loop {
        let waits = publisher.begin_calls(is_open).await;
        if !is_open && publisher.under_way.is_empty() {
            return;
        }
        let has_room = publisher.pool.ready() < publisher.most();
        let wait = tokio::time::sleep_until(waits.unwrap_or_else(Instant::now));
        tokio::select! {
            biased;
            Some(ended) = publisher.under_way.join_next() => {
                if let Ok(ended) = ended {
                    publisher.ended(ended).await;
                }
            }
            events = claimed.recv(), if is_open && has_room => match events {
                Some(events) => publisher.pool.add(events),
                None => is_open = false,
            },
            _ = publisher.more_to_come.changed(), if waits.is_some() => {}
            () = wait, if waits.is_some() => {}
        }
    }
}

/// What this stage works with.
struct Publisher {
    stages: Arc<Loop>,
    outcomes: mpsc::Sender<Vec<Decided>>,
    pool: Pool,
    /// Of the sink.
    capabilities: Capabilities,
    /// Dropped with this stage: what is on its way then is given up.
    under_way: JoinSet<Ended>,
    more_to_come: watch::Receiver<bool>,
    /// Since when a call waits for more.
    waits_since: Option<Instant>,
}

/// A call that has ended.
struct Ended {
    keys: Vec<KeyHash>,
    /// Keys of which an event was not delivered.
    stopped: HashSet<String>,
}

impl Publisher {
    fn new(stages: Arc<Loop>, outcomes: mpsc::Sender<Vec<Decided>>) -> Self {
        let capabilities = stages.target.sink.capabilities();
        Self {
            pool: Pool::new(capabilities.keeps_order),
            capabilities,
            under_way: JoinSet::new(),
            more_to_come: stages.more_to_come.subscribe(),
            waits_since: None,
            stages,
            outcomes,
        }
    }

    /// A call has no more events than these.
    fn most(&self) -> usize {
        let config = &self.stages.target.config;
        self.stages.pace_limit(self.capabilities.events.min(config.batch))
    }

    /// Begins what may begin. Returns by when a call begins that waits for more, if more may come.
    async fn begin_calls(&mut self, is_open: bool) -> Option<Instant> {
        if !self.stages.target.breaker().is_closed() {
            // Nothing more is sent to a sink that is down.
            let waiting = self.pool.remove_all();
            self.release(waiting).await;
        }
        let concurrency = self.stages.target.config.concurrency;
        while self.pool.ready() > 0 && self.under_way.len() < concurrency {
            if is_open && let Some(until) = self.waits_for_more() {
                return Some(until);
            }
            self.waits_since = None;
            let Some(call) = self.pool.next_call(self.most(), self.capabilities.bytes) else { break };
            let (stages, outcomes) = (Arc::clone(&self.stages), self.outcomes.clone());
            self.under_way.spawn(async move { publish(&stages, call, &outcomes).await });
        }
        None
    }

    /// Until when the next call is better not begun.
    fn waits_for_more(&mut self) -> Option<Instant> {
        let is_worth_it = self.pool.ready() >= self.most().div_ceil(2);
        if is_worth_it || !*self.more_to_come.borrow_and_update() {
            return None;
        }
        let now = Instant::now();
        let until = *self.waits_since.get_or_insert(now) + LINGER;
        (now < until).then_some(until)
    }

    async fn ended(&mut self, ended: Ended) {
        let waiting = self.pool.ended(&ended.keys, &ended.stopped);
        self.release(waiting).await;
    }

    async fn release(&self, events: Vec<Claimed>) {
        if events.is_empty() {
            return;
        }
        let decided: Vec<Decided> = events.iter().map(|event| release(&self.stages, event)).collect();
        self.stages.unsettled.add(decided.len() as u64);
        // There is nobody to tell only when all is over.
        let _ = self.outcomes.send(decided).await;
    }
}

/// One call of the sink, to its end.
async fn publish(stages: &Loop, call: Call, outcomes: &mpsc::Sender<Vec<Decided>>) -> Ended {
    let mut stopped = HashSet::new();
    let decided = send(stages, call.events, &mut stopped).await;
    stages.unsettled.add(decided.len() as u64);
    let delivered: Vec<Receipt> = delivered(&decided).collect();
    if outcomes.send(decided).await.is_ok() {
        // Only now: their settlements are in line before those of what comes next of their keys.
        stages.worker.delivered(&delivered);
    }
    Ended { keys: call.keys, stopped }
}

/// What becomes of the events of a call. Keys of which an event was not delivered are added to `stopped`.
async fn send(stages: &Loop, events: Vec<Claimed>, stopped: &mut HashSet<String>) -> Vec<Decided> {
    let target = &stages.target;
    let begun = Instant::now();
    let mut decided = Vec::with_capacity(events.len());
    let deadlines = deadlines(stages, &events);
    let (events, late) = split_late(events, &deadlines, begun);
    for event in &late {
        // The lane may be another's before the sink has answered.
        target.counters.late.add(1);
        stopped.extend(event.event.key.clone());
        decided.push(release(stages, event));
    }
    if events.is_empty() {
        return decided;
    }
    let left = deadlines.iter().flatten().filter(|deadline| **deadline > begun).min();
    let left = left.map_or(Duration::ZERO, |deadline| *deadline - begun);
    let timeout = target.config.publish_timeout.min(left);
    let call = AssertUnwindSafe(target.sink.publish(&events)).catch_unwind();
    let answered = tokio::time::timeout(timeout, call).await;
    stages.beat();
    stages.published(events.len(), begun.elapsed());
    target.publish_duration.observe(begun.elapsed());
    let mut deliveries = match answered {
        Ok(Ok(deliveries)) => deliveries,
        // Somebody's own sink. What it did before that is not known.
        Ok(Err(_)) => vec![Delivery::retry("the sink panicked"); events.len()],
        Err(_) => {
            target.counters.timeouts.add(1);
            let error = format!("the sink did not answer within {timeout:?}");
            vec![Delivery::retry(error); events.len()]
        }
    };
    deliveries.truncate(events.len());
    let mut tried = events;
    let untried = tried.split_off(deliveries.len());
    target.counters.unanswered.add(untried.len() as u64);
    note_health(stages, &deliveries);
    note_age(stages, &tried, &deliveries);
    for (event, delivery) in tried.iter().zip(deliveries) {
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

/// By when each event must have been sent; none: it is not this worker's any more. Those of a lane stand together, mostly, and are asked for once.
fn deadlines(stages: &Loop, events: &[Claimed]) -> Vec<Option<Instant>> {
    let mut asked: Option<(Token, Option<Instant>)> = None;
    let deadline = |event: &Claimed| match asked {
        Some((token, deadline)) if token == event.token => deadline,
        _ => asked.insert((event.token, stages.worker.deadline(event.token))).1,
    };
    events.iter().map(deadline).collect()
}

/// The events that may still be sent, and those that may not.
fn split_late(
    events: Vec<Claimed>,
    deadlines: &[Option<Instant>],
    now: Instant,
) -> (Vec<Claimed>, Vec<Claimed>) {
    let mut in_time = deadlines.iter().map(|deadline| deadline.is_some_and(|deadline| deadline > now));
    if in_time.clone().all(|is_in_time| is_in_time) {
        return (events, Vec::new());
    }
    events.into_iter().partition(|_| in_time.next().unwrap_or(false))
}
