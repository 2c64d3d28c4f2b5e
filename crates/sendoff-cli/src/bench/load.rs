//! The events of a measurement, and the check that each came once and in order.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Result;
use async_trait::async_trait;
use sendoff::outbox::{Claimed, Token, WorkerId};
use sendoff::{Attempts, Capabilities, DEFAULT_TARGET, Delivery, Event, EventId, NewEvent, Sink, SinkError};
use tokio::sync::Notify;

use crate::args::BenchArgs;
use crate::site::Site;

/// So many rows a transaction when the backlog is made.
const FILL: u64 = 1_000;

/// Which events are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) payload: usize,
    pub(crate) keys: u32,
}

impl Load {
    pub(crate) fn of(args: &BenchArgs) -> Self {
        Self { payload: args.payload as usize, keys: args.keys }
    }

    /// The event with this number: `{"n":000000000042,"x":"…"}`.
    pub(crate) fn event(&self, number: u64) -> NewEvent {
        let head = format!("{{\"n\":\"{number:012}\",\"x\":\"");
        let filler = "x".repeat(self.payload.saturating_sub(head.len() + 2));
        let key = fastrand::u32(..self.keys);
        NewEvent::new("bench").key(format!("key-{key}")).payload(format!("{head}{filler}\"}}"))
    }

    /// The event with this number as a worker would hand it out, each of a key of its own.
    pub(crate) fn claimed(&self, number: u64) -> Claimed {
        let new = self.event(number);
        let event = Event {
            event_id: EventId::generate(),
            position: i64::try_from(number).unwrap_or(i64::MAX),
            standing: sendoff::Standing::Lane,
            target: DEFAULT_TARGET.to_owned(),
            lane: 0,
            topic: new.topic,
            key: Some(format!("key-{number}")),
            payload: new.payload,
            content_type: new.content_type,
            headers: new.headers,
            created_at: SystemTime::now().into(),
            attempts: Attempts::default(),
        };
        let token = Token { worker: WorkerId::generate(), lane: 0, epoch: 1 };
        Claimed { event, token, deadline: tokio::time::Instant::now() }
    }

    /// Writes events from this number on.
    pub(crate) async fn fill(&self, site: &Site, events: u64) -> Result<()> {
        let outbox = site.outbox()?;
        let mut number = 0;
        while number < events {
            let count = FILL.min(events - number);
            let rows = (number..number + count).map(|number| self.event(number)).collect();
            site.write(&outbox, rows, true).await?;
            number += count;
        }
        Ok(())
    }
}

/// The number in a payload.
fn number_of(payload: &[u8]) -> Option<u64> {
    std::str::from_utf8(payload.get(6..18)?).ok()?.parse().ok()
}

pub(crate) fn now_micros() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// A sink that counts, and hands on to another.
pub(crate) struct Checked {
    sink: Arc<dyn Sink>,
    seen: Mutex<Seen>,
    events: u64,
    keys: RandomState,
    pub(crate) complete: Notify,
}

#[derive(Debug, Default)]
struct Seen {
    /// When each number came, in microseconds; 0: not yet.
    at: Vec<u64>,
    distinct: u64,
    duplicated: u64,
    /// Keys, by their hashes, and positions, as they came. They are compared when all is over: the time that takes is not the relay's.
    came: Vec<(u64, i64)>,
}

impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked").field("sink", &self.sink).finish_non_exhaustive()
    }
}

impl Checked {
    pub(crate) fn new(sink: Arc<dyn Sink>, events: u64) -> Self {
        let at = vec![0; usize::try_from(events).unwrap_or(usize::MAX)];
        let came = Vec::with_capacity(at.len());
        let seen = Mutex::new(Seen { at, came, ..Seen::default() });
        Self { sink, seen, events, keys: RandomState::new(), complete: Notify::new() }
    }

    fn note(&self, events: &[Claimed], deliveries: &[Delivery]) {
        let now = now_micros();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for (claimed, delivery) in events.iter().zip(deliveries) {
            if *delivery == Delivery::Delivered {
                seen.note(claimed, now, &self.keys);
            }
        }
        if seen.distinct == self.events {
            self.complete.notify_waiters();
        }
    }

    /// Waits until all have come, or none for so long.
    pub(crate) async fn wait(&self, stuck: Duration) {
        let mut before = 0;
        loop {
            let complete = self.complete.notified();
            let distinct = self.distinct();
            if distinct == self.events {
                return;
            }
            if tokio::time::timeout(stuck, complete).await.is_err() && self.distinct() == before {
                return;
            }
            before = distinct;
        }
    }

    pub(crate) fn distinct(&self) -> u64 {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).distinct
    }

    /// Lost, duplicated, out of order.
    pub(crate) fn faults(&self) -> [u64; 3] {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        [self.events - seen.distinct, seen.duplicated, seen.out_of_order()]
    }

    /// When each number came.
    pub(crate) fn arrivals(&self) -> Vec<u64> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).at.clone()
    }
}

impl Seen {
    fn note(&mut self, claimed: &Claimed, now: u64, keys: &RandomState) {
        let number = number_of(&claimed.event.payload).and_then(|number| usize::try_from(number).ok());
        let Some(slot) = number.and_then(|number| self.at.get_mut(number)) else { return };
        if *slot != 0 {
            self.duplicated += 1;
            return;
        }
        *slot = now;
        self.distinct += 1;
        if let Some(key) = claimed.event.key.as_deref() {
            self.came.push((keys.hash_one(key), claimed.event.position));
        }
    }

    /// How many came after a later one of their key.
    fn out_of_order(&self) -> u64 {
        let mut latest: HashMap<u64, i64> = HashMap::new();
        let is_late = |(key, position): &&(u64, i64)| {
            let latest = latest.entry(*key).or_insert(*position);
            let is_late = position < latest;
            *latest = *position.max(latest);
            is_late
        };
        self.came.iter().filter(is_late).count() as u64
    }
}

#[async_trait]
impl Sink for Checked {
    fn capabilities(&self) -> Capabilities {
        self.sink.capabilities()
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        let deliveries = self.sink.publish(events).await;
        self.note(events, &deliveries);
        deliveries
    }

    async fn check(&self) -> Result<(), SinkError> {
        self.sink.check().await
    }

    async fn close(&self) -> Result<(), SinkError> {
        self.sink.close().await
    }
}
