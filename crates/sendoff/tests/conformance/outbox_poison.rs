//! One event that always fails, a thousand of its key behind it, and a hundred thousand of other keys.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::outbox::{Claimed, EventState, OnExhausted, Outcome, Redrive, Selection, Worker, WorkerConfig};
use sendoff::testkit::StoreHarness as _;
use sendoff::{DEFAULT_TARGET, NewEvent};

use crate::harness::outbox::{Path, Sql, postgres};
use crate::servers::Server;
use crate::trial;

const OTHERS: usize = 100_000;
const BEHIND: usize = 1_000;
const ATTEMPTS: u32 = 3;

pub(crate) fn trials() -> Vec<Trial> {
    let case = |name: &str, policy| {
        trial(format!("postgres15::outbox::{name}"), Some(Server::Postgres15), move || poison(policy))
    };
    vec![
        case("a_poisoned_key_is_skipped_past_its_poison", OnExhausted::Skip),
        case("a_poisoned_key_is_blocked_until_redriven", OnExhausted::Block),
        case("a_poisoned_key_is_diverted_until_redriven", OnExhausted::Divert),
    ]
}

async fn enqueue(harness: &Sql<sqlx::Postgres>, events: Vec<NewEvent>) {
    for chunk in events.chunks(10_000) {
        let mut transaction = harness.host.begin().await.unwrap();
        harness.enqueue.enqueue_all(&mut transaction, chunk.to_vec()).await.unwrap();
        transaction.commit().await.unwrap();
    }
}

fn others() -> Vec<NewEvent> {
    (0..OTHERS)
        .map(|number| NewEvent::new("fine").key(format!("key-{}", number % 2_000)).payload("x"))
        .collect()
}

/// The poison and what is behind it, numbered.
fn key() -> Vec<NewEvent> {
    (0..=BEHIND)
        .map(|number| {
            let topic = if number == 0 { "poison" } else { "behind" };
            NewEvent::new(topic).key("poisoned").payload(number.to_string())
        })
        .collect()
}

/// What was delivered of the poisoned key, and how many others.
#[derive(Default)]
struct Delivered {
    key: Vec<usize>,
    others: usize,
}

impl Delivered {
    /// Publishes run by run: a failure stops its key.
    fn publish(&mut self, claimed: &[Claimed], is_cured: bool) -> Vec<(sendoff::outbox::Receipt, Outcome)> {
        let mut has_failed = false;
        let publish = |event: &Claimed| {
            let is_poison = event.event.topic == "poison" && !is_cured;
            let outcome = if event.event.key.as_deref() != Some("poisoned") {
                self.others += 1;
                Outcome::Published
            } else if has_failed {
                Outcome::Release
            } else if is_poison {
                has_failed = true;
                let error = "it never works";
                if event.event.attempts.failures + 1 >= ATTEMPTS {
                    Outcome::rejected(error)
                } else {
                    Outcome::retry(Duration::from_millis(50), error)
                }
            } else {
                self.key.push(String::from_utf8_lossy(&event.event.payload).parse().unwrap());
                Outcome::Published
            };
            (event.receipt(), outcome)
        };
        claimed.iter().map(publish).collect()
    }

    async fn work(&mut self, worker: &Worker, is_cured: bool, is_over: impl Fn(&Self) -> bool) {
        let began = Instant::now();
        while !is_over(self) {
            assert!(
                began.elapsed() < Duration::from_secs(60),
                "{} of the key, {} others",
                self.key.len(),
                self.others
            );
            let claimed = worker.claim(500).await.unwrap();
            if claimed.is_empty() {
                tokio::time::sleep(Duration::from_millis(1)).await;
                continue;
            }
            let outcomes = self.publish(&claimed, is_cured);
            worker.settle(&outcomes).await.unwrap();
        }
    }
}

async fn count(harness: &Sql<sqlx::Postgres>, state: EventState) -> u64 {
    let counts = harness.inspect().counts().await.unwrap();
    counts.targets.iter().map(|target| target.of(state)).sum()
}

async fn until_counted(harness: &Sql<sqlx::Postgres>, worker: &Worker, state: EventState, wanted: u64) {
    let began = Instant::now();
    let mut rest = Delivered::default();
    while count(harness, state).await != wanted {
        assert!(
            began.elapsed() < Duration::from_secs(30),
            "{} are {state}, not {wanted}",
            count(harness, state).await
        );
        let claimed = worker.claim(500).await.unwrap();
        let outcomes = rest.publish(&claimed, false);
        worker.settle(&outcomes).await.unwrap();
    }
    assert!(rest.key.is_empty(), "delivered though its key is held: {:?}", rest.key);
}

/// Brings the key back, some at a time.
async fn redrive(harness: &Sql<sqlx::Postgres>) {
    let selection = Selection::Key { target: DEFAULT_TARGET.into(), key: "poisoned".into() };
    let redrive = Redrive { selection, limit: 400, dry_run: false, by: "test".into() };
    while harness.inspect().redrive(&redrive).await.unwrap().dead > 0 {}
}

async fn poison(policy: OnExhausted) {
    let harness = postgres(Server::Postgres15, Path::Fast).await;
    let config = WorkerConfig { on_exhausted: policy, ..WorkerConfig::default() };
    let worker = Worker::start(harness.store(), config).await.unwrap();
    enqueue(&harness, others()).await;
    let began = Instant::now();
    Delivered::default().work(&worker, false, |delivered| delivered.others == OTHERS).await;
    let without = began.elapsed();

    enqueue(&harness, key()).await;
    enqueue(&harness, others()).await;
    let mut delivered = Delivered::default();
    let began = Instant::now();
    delivered.work(&worker, false, |delivered| delivered.others == OTHERS).await;
    let ratio = without.as_secs_f64() / began.elapsed().as_secs_f64();
    println!(
        "{policy:?}: {OTHERS} events of other keys beside a poisoned one: {ratio:.2} of the rate without it"
    );

    let behind: Vec<usize> = (1..=BEHIND).collect();
    let whole: Vec<usize> = (0..=BEHIND).collect();
    match policy {
        OnExhausted::Skip => {
            delivered.work(&worker, false, |delivered| delivered.key.len() == BEHIND).await;
            assert_eq!(delivered.key, behind, "the key goes on, in order");
            assert_eq!(count(&harness, EventState::Dead).await, 1);
            redrive(&harness).await;
            delivered.work(&worker, true, |delivered| delivered.key.len() == BEHIND + 1).await;
            assert_eq!(delivered.key.last(), Some(&0), "the dead one came back");
        }
        OnExhausted::Block | OnExhausted::Divert => {
            let state = if policy == OnExhausted::Block { EventState::Failed } else { EventState::Dead };
            until_counted(&harness, &worker, state, BEHIND as u64 + 1).await;
            assert!(delivered.key.is_empty(), "nothing of the key was delivered");
            redrive(&harness).await;
            delivered.work(&worker, true, |delivered| delivered.key.len() == BEHIND + 1).await;
            assert_eq!(delivered.key, whole, "the key came back in order");
        }
    }
    worker.stop(Duration::ZERO).await.unwrap();
}
