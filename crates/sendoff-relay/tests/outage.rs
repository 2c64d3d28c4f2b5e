//! One sink of three is gone for a minute, by virtual time.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::outbox::Claimed;
use sendoff::stores::memory::MemoryOutbox;
use sendoff::{Capabilities, Delivery, NewEvent, Sink, SinkError};
use sendoff_relay::{Relay, TargetConfig};
use tokio::sync::oneshot;
use tokio::time::Instant;

const TARGETS: [&str; 3] = ["first", "second", "third"];

/// Gone from here to there, of those three.
const GONE: (usize, u32, u32) = (1, 10, 70);

/// The whole run, in seconds.
const SECONDS: u32 = 80;

/// One event for each target at a time.
const GAP: Duration = Duration::from_millis(10);

const KEYS: u32 = 25;

/// Remembers when each event came, and with how many attempts behind it.
#[derive(Debug)]
struct Timed {
    is_there: AtomicBool,
    came: Mutex<Vec<(u32, Instant, u32)>>,
}

impl Timed {
    fn new() -> Arc<Self> {
        Arc::new(Self { is_there: AtomicBool::new(true), came: Mutex::default() })
    }
}

#[async_trait]
impl Sink for Timed {
    fn capabilities(&self) -> Capabilities {
        Capabilities { events: 100, ..Capabilities::default() }
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        tokio::time::sleep(Duration::from_millis(1)).await;
        if !self.is_there.load(Ordering::SeqCst) {
            return vec![Delivery::down("connection refused")];
        }
        let mut came = self.came.lock().unwrap();
        for event in events {
            let number = std::str::from_utf8(&event.event.payload).unwrap().parse().unwrap();
            came.push((number, Instant::now(), event.event.attempts.failures));
        }
        vec![Delivery::Delivered; events.len()]
    }

    async fn check(&self) -> Result<(), SinkError> {
        if self.is_there.load(Ordering::SeqCst) { Ok(()) } else { Err(SinkError::new("timed", "refused")) }
    }
}

/// Writes an event for each target at its time, and switches the sink; when each was written.
async fn produce(outbox: &MemoryOutbox, sink: &Timed) -> Vec<Instant> {
    let began = Instant::now();
    let (_, from, to) = GONE;
    let mut written = Vec::new();
    let per_second = 1_000 / u32::try_from(GAP.as_millis()).unwrap();
    for number in 0..SECONDS * per_second {
        tokio::time::sleep_until(began + GAP * number).await;
        sink.is_there.store(!(from..to).contains(&(number / per_second)), Ordering::SeqCst);
        let event = |target: &&str| {
            NewEvent::new("test")
                .target(*target)
                .key(format!("key-{}", number % KEYS))
                .payload(number.to_string())
        };
        let mut transaction = outbox.begin();
        transaction.enqueue(&TARGETS.iter().map(event).collect::<Vec<_>>()).unwrap();
        transaction.commit().unwrap();
        written.push(Instant::now());
    }
    written
}

#[tokio::test(start_paused = true)]
async fn one_sink_of_three_is_gone_for_a_minute() {
    let outbox = MemoryOutbox::new().unwrap();
    let sinks = [Timed::new(), Timed::new(), Timed::new()];
    let mut relay = Relay::new(Arc::new(outbox.clone()));
    for (target, sink) in TARGETS.iter().zip(&sinks) {
        let config = TargetConfig { target: (*target).to_owned(), ..TargetConfig::default() };
        relay = relay.target(config, Arc::clone(sink) as Arc<dyn Sink>);
    }
    let handle = relay.handle();
    let (stop, stopped) = oneshot::channel::<()>();
    let ended = tokio::spawn(relay.run(async { stopped.await.unwrap_or_default() }));
    let written = produce(&outbox, &sinks[GONE.0]).await;
    let patience = Instant::now() + Duration::from_secs(10);
    while sinks.iter().any(|sink| sink.came.lock().unwrap().len() < written.len()) {
        assert!(Instant::now() < patience, "not delivered: {:?}", handle.figures());
        tokio::time::sleep(GAP).await;
    }
    stop.send(()).unwrap();
    ended.await.unwrap().unwrap();
    for (index, sink) in sinks.iter().enumerate() {
        let came = sink.came.lock().unwrap();
        assert_eq!(came.len(), written.len(), "each once");
        let mut last: HashMap<u32, u32> = HashMap::new();
        for (number, at, failures) in came.iter() {
            assert_eq!(*failures, 0, "an attempt was spent on event {number}");
            let before = last.insert(number % KEYS, *number);
            assert!(before.is_none_or(|before| before < *number), "out of order: {before:?}, {number}");
            if index != GONE.0 {
                let took = *at - written[*number as usize];
                assert!(took < Duration::from_millis(50), "event {number} took {took:?}: it was held up");
            }
        }
        let figures = handle.figures()[TARGETS[index]];
        assert_eq!((figures.retried, figures.given_up), (0, 0));
        assert_eq!(figures.down > 0, index == GONE.0);
    }
    // Back within 5 s of its return: the last of what had piled up.
    let (_, from, to) = GONE;
    let (began, came) = (written[0], sinks[GONE.0].came.lock().unwrap());
    let piled_up = came.iter().filter(|(number, ..)| (from * 100..to * 100).contains(number));
    let last = piled_up.map(|(_, at, _)| *at).max().unwrap();
    let took = last.saturating_duration_since(began + Duration::from_secs(u64::from(to)));
    assert!(took < Duration::from_secs(5), "what had piled up took {took:?}");
}
