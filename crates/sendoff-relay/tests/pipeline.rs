//! The relay on the memory store: what each stage promises.

#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use sendoff::outbox::{Claimed, Inspect as _, Store};
use sendoff::stores::memory::MemoryOutbox;
use sendoff::{Capabilities, Delivery, NewEvent, Sink, SinkError};
use sendoff_relay::{BreakerConfig, Relay, RelayError, RelayHandle, RetryPolicy, TargetConfig};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Long enough for a busy machine; nothing waits for it unless something is wrong.
const LONG: Duration = Duration::from_secs(20);

type Decide = Box<dyn Fn(&Claimed) -> Delivery + Send + Sync>;

/// A sink that is told what to answer, and remembers what it was given.
struct Scripted {
    decide: Decide,
    keeps_order: bool,
    is_there: AtomicBool,
    /// Topic and payload of what was delivered.
    delivered: Mutex<Vec<(Option<String>, String)>>,
    /// How often each payload was tried.
    tried: Mutex<HashMap<String, u32>>,
    calls: AtomicU32,
    /// Calls with two events of one key.
    crowded: AtomicU32,
    takes: Duration,
}

impl std::fmt::Debug for Scripted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scripted")
    }
}

impl Scripted {
    fn new(decide: impl Fn(&Claimed) -> Delivery + Send + Sync + 'static) -> Self {
        Self {
            decide: Box::new(decide),
            keeps_order: false,
            is_there: AtomicBool::new(true),
            delivered: Mutex::default(),
            tried: Mutex::default(),
            calls: AtomicU32::new(0),
            crowded: AtomicU32::new(0),
            takes: Duration::ZERO,
        }
    }

    fn of_key(&self, key: &str) -> Vec<String> {
        let delivered = self.delivered.lock().unwrap();
        let of_key = delivered.iter().filter(|(known, _)| known.as_deref() == Some(key));
        of_key.map(|(_, payload)| payload.clone()).collect()
    }

    fn count(&self) -> usize {
        self.delivered.lock().unwrap().len()
    }

    fn tries(&self, payload: &str) -> u32 {
        self.tried.lock().unwrap().get(payload).copied().unwrap_or_default()
    }
}

fn text(claimed: &Claimed) -> String {
    String::from_utf8(claimed.event.payload.clone()).unwrap()
}

#[async_trait]
impl Sink for Scripted {
    fn capabilities(&self) -> Capabilities {
        Capabilities { events: 10, keeps_order: self.keeps_order, ..Capabilities::default() }
    }

    async fn publish(&self, events: &[Claimed]) -> Vec<Delivery> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if !self.keeps_order {
            let mut keys: Vec<_> = events.iter().filter_map(|event| event.event.key.clone()).collect();
            let count = keys.len();
            keys.sort();
            keys.dedup();
            self.crowded.fetch_add(u32::from(keys.len() < count), Ordering::SeqCst);
        }
        tokio::time::sleep(self.takes).await;
        if !self.is_there.load(Ordering::SeqCst) {
            return vec![Delivery::down("gone fishing")];
        }
        let mut answers = Vec::new();
        for event in events {
            *self.tried.lock().unwrap().entry(text(event)).or_default() += 1;
            let answer = (self.decide)(event);
            if answer == Delivery::Delivered {
                self.delivered.lock().unwrap().push((event.event.key.clone(), text(event)));
            }
            answers.push(answer);
        }
        answers
    }

    async fn check(&self) -> Result<(), SinkError> {
        if self.is_there.load(Ordering::SeqCst) {
            Ok(())
        } else {
            Err(SinkError::new("scripted", "gone fishing"))
        }
    }
}

/// A relay that runs.
struct Running {
    outbox: MemoryOutbox,
    handle: RelayHandle,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<(), RelayError>>,
}

fn quick() -> TargetConfig {
    TargetConfig {
        retry: RetryPolicy { base: Duration::from_millis(1), cap: Duration::from_millis(2), attempts: 3 },
        breaker: BreakerConfig { probe: Duration::from_millis(5), probe_max: Duration::from_millis(20) },
        poll_max: Duration::from_millis(20),
        ..TargetConfig::default()
    }
}

fn start(outbox: &MemoryOutbox, config: TargetConfig, sink: &Arc<Scripted>) -> Running {
    let store: Arc<dyn Store> = Arc::new(outbox.clone());
    let relay = Relay::new(store).target(config, Arc::clone(sink) as Arc<dyn Sink>);
    let handle = relay.handle();
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(relay.run(async { stopped.await.unwrap_or_default() }));
    Running { outbox: outbox.clone(), handle, stop, ended }
}

impl Running {
    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.ended.await.unwrap().unwrap();
        // Nothing is left leased after a clean stop.
        let lanes = self.outbox.lanes("default").await.unwrap();
        assert!(lanes.iter().all(|lane| lane.owner.is_none()), "{lanes:?}");
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waited = tokio::time::timeout(LONG, async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    });
    assert!(waited.await.is_ok(), "waited in vain: {what}");
}

fn write(outbox: &MemoryOutbox, key: &str, payloads: impl IntoIterator<Item = String>) {
    let events: Vec<NewEvent> =
        payloads.into_iter().map(|payload| NewEvent::new("test").key(key).payload(payload)).collect();
    let mut transaction = outbox.begin();
    transaction.enqueue(&events).unwrap();
    transaction.commit().unwrap();
}

fn numbers(prefix: &str, count: u32) -> Vec<String> {
    (1..=count).map(|number| format!("{prefix}{number:04}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_event_is_delivered_once_and_in_the_order_of_its_key() {
    for keeps_order in [false, true] {
        let outbox = MemoryOutbox::new().unwrap();
        let keys = 30;
        for key in 0..keys {
            write(&outbox, &format!("k{key}"), numbers("", 20));
        }
        let sink = Arc::new(Scripted { keeps_order, ..Scripted::new(|_| Delivery::Delivered) });
        let running = start(&outbox, quick(), &sink);
        until("all delivered", || sink.count() == keys * 20).await;
        running.stop().await;
        assert_eq!(sink.count(), keys * 20);
        assert_eq!(sink.crowded.load(Ordering::SeqCst), 0, "two events of one key were in a call");
        for key in 0..keys {
            assert_eq!(sink.of_key(&format!("k{key}")), numbers("", 20));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_stops_its_key_at_that_event_and_no_other() {
    let outbox = MemoryOutbox::new().unwrap();
    write(&outbox, "bad", numbers("b", 10));
    write(&outbox, "good", numbers("g", 10));
    // Twice, which is within the attempts.
    let failed = AtomicU32::new(0);
    let sink = Arc::new(Scripted::new(move |event| {
        if text(event) == "b0004" && failed.fetch_add(1, Ordering::SeqCst) < 2 {
            return Delivery::retry("not now");
        }
        Delivery::Delivered
    }));
    let running = start(&outbox, quick(), &sink);
    until("all delivered", || sink.count() == 20).await;
    running.stop().await;
    assert_eq!(sink.of_key("bad"), numbers("b", 10), "in order, whatever failed");
    assert_eq!(sink.of_key("good"), numbers("g", 10));
    assert_eq!(sink.tries("b0004"), 3);
    assert_eq!(sink.tries("b0005"), 1, "only what was tried counts");
    assert_eq!(sink.crowded.load(Ordering::SeqCst), 0, "two events of one key were in a call");
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_run_out_and_a_rejection_is_final() {
    let outbox = MemoryOutbox::new().unwrap();
    write(&outbox, "a", numbers("a", 3));
    write(&outbox, "r", numbers("r", 3));
    let sink = Arc::new(Scripted::new(|event| match text(event).as_str() {
        "a0001" => Delivery::retry("never"),
        "r0001" => Delivery::reject("too large"),
        _ => Delivery::Delivered,
    }));
    let running = start(&outbox, quick(), &sink);
    until("the rest delivered", || sink.count() == 4).await;
    running.stop().await;
    assert_eq!((sink.tries("a0001"), sink.tries("r0001")), (3, 1));
    let counts = outbox.counts().await.unwrap();
    assert_eq!(counts.targets[0].dead, 2, "{counts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_events_own_policy_counts() {
    let outbox = MemoryOutbox::new().unwrap();
    let mut transaction = outbox.begin();
    let event = NewEvent::new("test").payload("once").header(sendoff_relay::RETRY_HEADER, "attempts=1");
    transaction.enqueue(&[event]).unwrap();
    transaction.commit().unwrap();
    let sink = Arc::new(Scripted::new(|_| Delivery::retry("never")));
    let running = start(&outbox, quick(), &sink);
    let handle = running.handle.clone();
    until("given up", || handle.figures()["default"].given_up == 1).await;
    running.stop().await;
    assert_eq!(sink.tries("once"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_is_down_spends_no_attempts_and_holds_up_no_other() {
    let outbox = MemoryOutbox::new().unwrap();
    write(&outbox, "k", numbers("", 50));
    let mut transaction = outbox.begin();
    let other: Vec<NewEvent> = numbers("o", 50)
        .into_iter()
        .map(|text| NewEvent::new("test").target("other").key("o").payload(text))
        .collect();
    transaction.enqueue(&other).unwrap();
    transaction.commit().unwrap();
    let down = Arc::new(Scripted::new(|_| Delivery::Delivered));
    down.is_there.store(false, Ordering::SeqCst);
    let up = Arc::new(Scripted::new(|_| Delivery::Delivered));
    let relay = Relay::new(Arc::new(outbox.clone()))
        .target(quick(), Arc::clone(&down) as Arc<dyn Sink>)
        .target(TargetConfig { target: "other".to_owned(), ..quick() }, Arc::clone(&up) as Arc<dyn Sink>);
    let handle = relay.handle();
    let (stop, stopped) = oneshot::channel::<()>();
    let ended = tokio::spawn(relay.run(async { stopped.await.unwrap_or_default() }));
    until("the other's", || up.count() == 50).await;
    until("known to be down", || handle.is_up("default") == Some(false)).await;
    // So many that its attempts would be gone by far, had it been charged.
    until("looked at often", || down.calls.load(Ordering::SeqCst) >= 1).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(down.calls.load(Ordering::SeqCst) < 5, "nothing is sent to a sink that says it is not there");
    down.is_there.store(true, Ordering::SeqCst);
    until("delivered when it is back", || down.count() == 50).await;
    stop.send(()).unwrap();
    ended.await.unwrap().unwrap();
    assert_eq!(down.of_key("k"), numbers("", 50));
    let figures = handle.figures()["default"];
    assert_eq!((figures.retried, figures.given_up, figures.published), (0, 0, 50), "{figures:?}");
    assert!(figures.down >= 1 && handle.is_up("default") == Some(true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_takes_too_long_is_tried_again() {
    let outbox = MemoryOutbox::new().unwrap();
    write(&outbox, "k", numbers("", 1));
    let sink = Arc::new(Scripted { takes: LONG, ..Scripted::new(|_| Delivery::Delivered) });
    let config = TargetConfig { publish_timeout: Duration::from_millis(10), ..quick() };
    let running = start(&outbox, config, &sink);
    let handle = running.handle.clone();
    until("given up after its attempts", || handle.figures()["default"].given_up == 1).await;
    assert_eq!(handle.figures()["default"].timeouts, 3);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_panics_is_tried_again() {
    let outbox = MemoryOutbox::new().unwrap();
    write(&outbox, "k", numbers("", 1));
    write(&outbox, "other", numbers("", 1));
    let panics = AtomicU32::new(2);
    let sink = Arc::new(Scripted::new(move |_| {
        let left = panics.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        assert!(left.is_err(), "on purpose");
        Delivery::Delivered
    }));
    let running = start(&outbox, quick(), &sink);
    until("both are delivered", || sink.count() == 2).await;
    let figures = running.handle.figures()["default"];
    assert!(figures.retried >= 2 && figures.given_up == 0, "{figures:?}");
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_target_claims_nothing_and_a_bell_is_heard() {
    let outbox = MemoryOutbox::new().unwrap();
    let sink = Arc::new(Scripted::new(|_| Delivery::Delivered));
    let running = start(&outbox, TargetConfig { poll_max: LONG, ..quick() }, &sink);
    assert!(running.handle.drain("default").await);
    write(&outbox, "k", numbers("", 5));
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(sink.count(), 0, "it is paused");
    assert!(running.handle.resume("default"));
    until("resumed", || sink.count() == 5).await;
    assert!(!running.handle.pause("nobody"));
    // It polls seldom by now, but hears the bell.
    tokio::time::sleep(Duration::from_millis(300)).await;
    write(&outbox, "k", numbers("", 5));
    let rung = tokio::time::Instant::now();
    running.handle.bell().ring();
    until("rung", || sink.count() == 10).await;
    assert!(rung.elapsed() < LONG / 2);
    running.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_relay_that_ended_with_events_in_hand_is_not_drained_for_ever() {
    let outbox = MemoryOutbox::new().unwrap();
    write(&outbox, "k", numbers("", 1));
    let sink = Arc::new(Scripted { takes: LONG, ..Scripted::new(|_| Delivery::Delivered) });
    let running = start(&outbox, TargetConfig { grace: Duration::from_millis(10), ..quick() }, &sink);
    let handle = running.handle.clone();
    until("it is being published", || sink.calls.load(Ordering::SeqCst) == 1).await;
    running.stop().await;
    let drained = tokio::time::timeout(LONG, handle.drain("default")).await;
    assert_eq!(drained, Ok(false));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rate_is_kept() {
    let outbox = MemoryOutbox::new().unwrap();
    write(&outbox, "k", numbers("", 60));
    let sink = Arc::new(Scripted::new(|_| Delivery::Delivered));
    let began = tokio::time::Instant::now();
    let running = start(&outbox, TargetConfig { rate: Some(100), ..quick() }, &sink);
    until("all", || sink.count() == 60).await;
    // 10 at once, and 50 more at 100 a second.
    assert!(began.elapsed() >= Duration::from_millis(480), "{:?}", began.elapsed());
    running.stop().await;
}

#[tokio::test]
async fn what_cannot_work_is_refused() {
    let store: Arc<dyn Store> = Arc::new(MemoryOutbox::new().unwrap());
    let sink: Arc<dyn Sink> = Arc::new(Scripted::new(|_| Delivery::Delivered));
    let wrong = TargetConfig { concurrency: 0, ..TargetConfig::default() };
    let error =
        Relay::new(Arc::clone(&store)).target(wrong, Arc::clone(&sink)).run(async {}).await.unwrap_err();
    assert_eq!(error.to_string(), "target \"default\": concurrency must be more than 0");
    let twice = Relay::new(store)
        .target(TargetConfig::default(), Arc::clone(&sink))
        .target(TargetConfig::default(), sink);
    assert!(twice.run(async {}).await.unwrap_err().to_string().contains("twice"));
}
