//! Producers and workers at once, without faults: each committed event is delivered one time, in the order of its key.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::Mutex;

use super::{event, loose, settle, start, text};
use crate::event::{Event, EventId, NewEvent};
use crate::outbox::{Outcome, Stats, Worker};
use crate::testkit::{HostTransaction as _, StoreHarness};

const PRODUCERS: u64 = 4;
const TRANSACTIONS: usize = 120;
const KEYS: usize = 40;

/// What the producers know.
#[derive(Default)]
struct Written {
    committed: Vec<EventId>,
    rolled_back: HashSet<EventId>,
    /// The order of each key, as the host serialised it.
    keys: HashMap<String, Vec<EventId>>,
}

/// One lock a key: the host's transactions of a key come one after the other.
type Keys = Arc<Vec<Mutex<()>>>;

async fn produce<H: StoreHarness>(harness: Arc<H>, number: u64, keys: Keys, written: Arc<Mutex<Written>>) {
    let mut random = fastrand::Rng::with_seed(number);
    for transaction in 0..TRANSACTIONS {
        // A few keys get most of it.
        let index = if random.bool() { random.usize(..3) } else { random.usize(..KEYS) };
        let key = format!("key-{index}");
        let alone = keys[index].lock().await;
        let name = |part: usize| format!("{number}-{transaction}-{part}");
        let new: Vec<NewEvent> = (0..random.usize(1..=7))
            .map(|part| if part % 4 == 3 { loose(&name(part)) } else { event(&key, &name(part)) })
            .collect();
        let mut open = harness.begin().await;
        let ids = open.enqueue(&new).await.unwrap();
        if random.u8(..5) == 0 {
            // Held open while later ones commit.
            tokio::time::sleep(Duration::from_millis(random.u64(1..8))).await;
        }
        if random.u8(..3) == 0 {
            open.rollback().await;
            written.lock().await.rolled_back.extend(ids);
            continue;
        }
        open.commit().await.unwrap();
        let mut written = written.lock().await;
        for (id, event) in ids.iter().zip(&new) {
            written.committed.push(*id);
            if let Some(key) = &event.key {
                written.keys.entry(key.clone()).or_default().push(*id);
            }
        }
        drop(alone);
    }
}

/// Always one claim ahead of what is settled.
async fn work(worker: Worker, delivered: Arc<Mutex<Vec<Event>>>, is_over: Arc<AtomicBool>) -> Stats {
    let mut unsettled = Vec::new();
    while !is_over.load(Ordering::SeqCst) || !unsettled.is_empty() {
        let claimed = worker.claim(60).await.unwrap();
        // Delivered in the order of handing out: a run is published in order.
        delivered.lock().await.extend(claimed.iter().map(|claimed| claimed.event.clone()));
        let idle = claimed.is_empty();
        let settled = std::mem::replace(&mut unsettled, claimed);
        if !settled.is_empty() {
            let summary = settle(&worker, &settled, &Outcome::Published).await;
            assert_eq!(
                (summary.applied, summary.stale),
                (settled.len(), 0),
                "without faults nothing is lost"
            );
        } else if idle {
            tokio::time::sleep(Duration::from_millis(3)).await;
        }
    }
    worker.stop(Duration::ZERO).await.unwrap()
}

fn verify(written: &Written, delivered: &[Event]) {
    let mut seen = HashSet::new();
    let mut keys: HashMap<String, Vec<EventId>> = HashMap::new();
    for event in delivered {
        let id = event.event_id;
        assert!(seen.insert(id), "{} was delivered twice", text(event));
        assert!(!written.rolled_back.contains(&id), "{} was rolled back and delivered", text(event));
        keys.entry(event.key.clone().unwrap_or_default()).or_default().push(id);
    }
    let lost: Vec<_> = written.committed.iter().filter(|id| !seen.contains(id)).collect();
    assert!(lost.is_empty(), "{} committed events were not delivered", lost.len());
    assert_eq!(seen.len(), written.committed.len(), "something was delivered that nobody wrote");
    for (key, order) in &written.keys {
        assert_eq!(keys[key], *order, "{key} came in another order than it was written in");
    }
}

pub(crate) async fn producers_and_workers_race_and_nothing_is_lost_or_doubled<H: StoreHarness>(
    harness: Arc<H>,
) {
    let began = Instant::now();
    let keys: Keys = Arc::new((0..KEYS).map(|_| Mutex::new(())).collect());
    let (written, delivered) = (Arc::<Mutex<Written>>::default(), Arc::<Mutex<Vec<Event>>>::default());
    let is_over = Arc::new(AtomicBool::new(false));
    let mut workers = Vec::new();
    for _ in 0..2 {
        let worker = start(harness.store(), |config| {
            config.run = 10;
            config.window = 200;
        })
        .await;
        workers.push(tokio::spawn(work(worker, Arc::clone(&delivered), Arc::clone(&is_over))));
    }
    let producers: Vec<_> = (0..PRODUCERS)
        .map(|number| {
            tokio::spawn(produce(Arc::clone(&harness), number, Arc::clone(&keys), Arc::clone(&written)))
        })
        .collect();
    for producer in producers {
        producer.await.unwrap();
    }
    let patience = super::Patience::new("every committed event is delivered");
    while delivered.lock().await.len() < written.lock().await.committed.len() {
        patience.wait().await;
    }
    is_over.store(true, Ordering::SeqCst);
    let mut named = 0;
    for worker in workers {
        let stats = worker.await.unwrap();
        assert_eq!((stats.stale, stats.missing, stats.lost), (0, 0, 0), "without faults");
        named += stats.named;
    }
    assert_eq!(named, 0, "without crashes nothing is written down");
    let (written, delivered) = (written.lock().await, delivered.lock().await);
    verify(&written, &delivered);
    let hot = written.keys.values().map(Vec::len).max().unwrap_or(0);
    println!(
        "{} events of {} keys (the hottest has {hot}), {} rolled back, in {:.2} s",
        delivered.len(),
        written.keys.len(),
        written.rolled_back.len(),
        began.elapsed().as_secs_f64(),
    );
}
