//! Any operations in any order: after each the store looks as the one in memory does.

use std::time::Duration;

use sendoff::NewEvent;
use sendoff::outbox::{Cancelled, Change, Due, EventState, Purge, Reason, Redrive, Selection};

use super::bench::{Bench, Leased, assert_same, id, number};
use super::scenario::{bury, park};

const STEPS: usize = 120;
const HOUR: Duration = Duration::from_secs(3_600);
/// Longer than the coarsest clock's step: SQLite's has milliseconds.
const TICK: Duration = Duration::from_millis(3);

#[derive(Debug, Clone)]
enum Step {
    Enqueue(u128, Option<&'static str>),
    Settle(u128, Change),
    Redrive(Redrive),
    Cancel(u128),
    Purge(Purge, u32),
}

pub(crate) async fn compare(bench: Bench) {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let model = Bench::memory();
    let lease = Duration::from_secs(600);
    let (of_model, of_bench) = (model.lease("t", lease).await, bench.lease("t", lease).await);
    let mut next = 1;
    let mut steps = Vec::new();
    for _ in 0..STEPS {
        let step = choose(&mut random, &model, &mut next).await;
        steps.push(step.clone());
        let expected = apply(&model, &of_model, &step).await;
        let seen = apply(&bench, &of_bench, &step).await;
        assert_same(&expected, &seen, || format!("seed {seed}: {steps:?}"));
        let (expected, seen) = (model.picture("t").await, bench.picture("t").await);
        assert_same(&expected, &seen, || format!("seed {seed}: {steps:?}"));
    }
    bench.end().await;
}

async fn choose(random: &mut fastrand::Rng, model: &Bench, next: &mut u128) -> Step {
    let key = *random.choice(&[Some("a"), Some("b"), Some("c"), None]).unwrap();
    let mut open = Vec::new();
    for state in [EventState::Unprocessed, EventState::Processing, EventState::Failed] {
        open.extend(model.list("t", state).await.iter().map(|listed| number(listed.event.event_id)));
    }
    let dead = model.list("t", EventState::Dead).await;
    match (random.u8(..10), random.choice(&open)) {
        (0..3, _) | (3..7, None) => {
            *next += 1;
            Step::Enqueue(*next, key)
        }
        (3..7, Some(which)) => {
            let has_key = model.inspect.get(id(*which)).await.unwrap().unwrap().event.key.is_some();
            Step::Settle(*which, change(random, has_key))
        }
        (7, _) => {
            let selection = match (random.u8(..3), key, random.choice(&dead)) {
                (0, Some(key), _) => Selection::Key { target: "t".to_owned(), key: key.to_owned() },
                (1, _, Some(dead)) => Selection::Event(dead.event.event_id),
                _ => Selection::Target("t".to_owned()),
            };
            let (limit, dry_run) = (random.u32(..5), random.u8(..5) == 0);
            Step::Redrive(Redrive { selection, limit, dry_run, by: "op".to_owned() })
        }
        (8, which) => Step::Cancel(*which.unwrap_or(next)),
        _ => {
            let (target, older_than) = ("t".to_owned(), Duration::ZERO);
            let purge = if random.bool() {
                Purge::Dead { target, older_than }
            } else {
                Purge::Published { target, older_than }
            };
            Step::Purge(purge, random.u32(..3))
        }
    }
}

fn change(random: &mut fastrand::Rng, has_key: bool) -> Change {
    match random.u8(..10) {
        0..2 => Change::Publish,
        2 => park(Reason::Retry, Due::In(HOUR)),
        3 => park(Reason::Retry, Due::In(Duration::ZERO)),
        4 => park(Reason::Delayed, Due::In(HOUR)),
        5 if has_key => park(Reason::Behind, Due::Never),
        6 => park(Reason::Blocked, Due::Never),
        7 => bury(false),
        _ => bury(has_key),
    }
}

async fn apply(bench: &Bench, worker: &Leased, step: &Step) -> String {
    bench.wait(TICK).await;
    match step {
        Step::Enqueue(number, key) => {
            let event = NewEvent::new("topic").target("t").payload("content");
            let event = if let Some(key) = key { event.key(*key) } else { event };
            bench.enqueue(*number, event).await;
            String::new()
        }
        Step::Settle(number, change) => {
            let settled = bench.settle(worker, *number, change.clone()).await;
            format!("{settled:?}")
        }
        Step::Redrive(redrive) => format!("{:?}", bench.inspect.redrive(redrive).await.unwrap()),
        Step::Cancel(number) => match bench.inspect.cancel(id(*number), "op").await.unwrap() {
            // Whose it is differs from store to store.
            Cancelled::MayBeInFlight { .. } => "may be in flight".to_owned(),
            other => format!("{other:?}"),
        },
        Step::Purge(purge, batch) => format!("{:?}", bench.inspect.purge(purge, *batch).await.unwrap()),
    }
}
