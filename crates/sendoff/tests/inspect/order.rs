//! An operator redrives while a worker fails, gives up and diverts: every event is delivered in the end, and those of a key in their order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use sendoff::NewEvent;
use sendoff::outbox::{Claimed, OnExhausted, Outcome, Redrive, Selection, Worker, WorkerConfig};

use super::bench::{Bench, number};

const EVENTS: u128 = 200;
const KEYS: u128 = 6;
/// Nothing may stand still for so long.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn compare(bench: Bench) {
    let config = WorkerConfig {
        target: "t".to_owned(),
        lease: Duration::from_secs(20),
        on_exhausted: OnExhausted::Divert,
        ..WorkerConfig::default()
    };
    let worker = Worker::start(Arc::clone(&bench.store), config).await.unwrap();
    let is_over = Arc::new(AtomicBool::new(false));
    let operator = tokio::spawn(redrive_until(Arc::clone(&bench.inspect), Arc::clone(&is_over)));
    let mut delivered: BTreeMap<String, Vec<u128>> = BTreeMap::new();
    let mut next = 0;
    let mut count = 0;
    let mut progress = Instant::now();
    while count < EVENTS {
        assert!(progress.elapsed() < PATIENCE, "{count} delivered: {}", bench.picture("t").await);
        for _ in 0..5 {
            if next < EVENTS {
                next += 1;
                let key = format!("key {}", next % KEYS);
                bench.enqueue(next, NewEvent::new("topic").target("t").key(key)).await;
            }
        }
        let outcomes = publish(&worker.claim(40).await.unwrap(), &mut delivered, next == EVENTS);
        let published = outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Published).count();
        if published > 0 {
            count += published as u128;
            progress = Instant::now();
        } else {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        worker.settle(&outcomes).await.unwrap();
    }
    is_over.store(true, Ordering::Relaxed);
    operator.await.unwrap();
    worker.stop(Duration::from_secs(1)).await.unwrap();
    for (key, numbers) in delivered {
        assert!(numbers.is_sorted(), "{key}: {numbers:?}");
    }
    bench.end().await;
}

/// What a sink with bad days says: of each key's run it takes what comes before the first failure.
fn publish(
    claimed: &[Claimed],
    delivered: &mut BTreeMap<String, Vec<u128>>,
    is_kind: bool,
) -> Vec<(sendoff::outbox::Receipt, Outcome)> {
    let mut failed: Vec<&str> = Vec::new();
    let mut outcomes = Vec::new();
    for claimed in claimed {
        let key = claimed.event.key.as_deref().unwrap();
        let outcome = match fastrand::u8(..if is_kind { 30 } else { 10 }) {
            _ if failed.contains(&key) => Outcome::Release,
            0 => Outcome::rejected("never"),
            1 => Outcome::retry(Duration::from_millis(fastrand::u64(..20)), "not now"),
            _ => Outcome::Published,
        };
        if outcome == Outcome::Published {
            delivered.entry(key.to_owned()).or_default().push(number(claimed.event.event_id));
        } else {
            failed.push(key);
        }
        outcomes.push((claimed.receipt(), outcome));
    }
    outcomes
}

async fn redrive_until(inspect: Arc<dyn sendoff::outbox::Inspect>, is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        let selection = Selection::Target("t".to_owned());
        let redrive = Redrive { selection, limit: fastrand::u32(1..6), dry_run: false, by: "op".to_owned() };
        inspect.redrive(&redrive).await.unwrap();
        tokio::time::sleep(Duration::from_millis(fastrand::u64(..5))).await;
    }
}
