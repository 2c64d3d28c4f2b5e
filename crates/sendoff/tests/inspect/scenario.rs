//! One day of an operator, step by step, on any store; what it saw is compared with what it sees in memory.

use std::time::Duration;

use sendoff::claim::Timestamp;
use sendoff::outbox::{
    Cancelled, Cause, Change, Due, EventState, Explanation, Failure, ListQuery, Purge, Reason, Redrive,
    Redriven, Selection,
};
use sendoff::{Attempts, NewEvent};

use super::bench::{Bench, Leased, assert_same, id, number};

const HOUR: Duration = Duration::from_secs(3_600);
const INSTANT: Duration = Duration::from_millis(20);
const LEASE: Duration = Duration::from_secs(600);

/// What is written down in the scenario: two pauses, four cancellations, seven redrives.
const OPERATIONS: i64 = 13;

pub(crate) async fn compare(bench: Bench) {
    let expected = run(&Bench::memory()).await;
    let seen = run(&bench).await;
    assert_eq!(expected.len(), seen.len());
    for (step, (expected, seen)) in expected.iter().zip(&seen).enumerate() {
        assert_same(expected, seen, || format!("step {step}"));
    }
    assert_eq!(bench.end().await, Some(OPERATIONS));
}

async fn run(bench: &Bench) -> Vec<String> {
    let mut seen = Vec::new();
    before_any_worker(bench, &mut seen).await;
    let worker = bench.lease("t", LEASE).await;
    while_leased(bench, &mut seen).await;
    parks_and_dies(bench, &worker, &mut seen).await;
    diverted_key_comes_back_in_parts(bench, &worker, &mut seen).await;
    blocked_key_goes_on(bench, &worker, &mut seen).await;
    purges(bench, &worker, &mut seen).await;
    without_a_key(bench, &worker, &mut seen).await;
    same_id_again(bench, &worker, &mut seen).await;
    bench.store.leave(&worker.member).await.unwrap();
    seen.push(bench.picture("t").await);
    abandoned(bench, &mut seen).await;
    seen
}

fn event(key: &str) -> NewEvent {
    NewEvent::new("topic").target("t").key(key).payload(format!("of {key}")).header("tenant", "acme")
}

async fn before_any_worker(bench: &Bench, seen: &mut Vec<String>) {
    assert!(bench.inspect.counts().await.unwrap().targets.is_empty());
    bench.enqueue(1, event("a")).await;
    bench.enqueue(2, event("a")).await;
    bench.enqueue(3, event("b")).await;
    bench.enqueue(4, NewEvent::new("topic").target("t")).await;
    let far = Timestamp::from_micros(4_000_000_000_000_000);
    bench.enqueue(5, event("c").deliver_at(far)).await;
    bench.enqueue(6, NewEvent::new("topic").target("u")).await;
    seen.push(bench.picture("t").await);
    let counts = bench.inspect.counts().await.unwrap();
    let targets: Vec<&str> = counts.targets.iter().map(|counts| counts.target.as_str()).collect();
    assert_eq!(targets, ["t", "u"]);
    assert_eq!(bench.inspect.cancel(id(6), "op").await.unwrap(), Cancelled::Yes);
    assert_eq!(bench.inspect.cancel(id(6), "op").await.unwrap(), Cancelled::NoSuchEvent);
    assert_eq!(bench.inspect.get(id(6)).await.unwrap(), None);
    assert_eq!(bench.inspect.explain(id(6)).await.unwrap(), Explanation::NoSuchEvent);
    assert!(bench.inspect.lanes("nobody").await.unwrap().is_empty());
}

async fn while_leased(bench: &Bench, seen: &mut Vec<String>) {
    seen.push(bench.picture("t").await);
    let Explanation::Leased { before, name, worker, .. } = bench.inspect.explain(id(2)).await.unwrap() else {
        panic!("it is in a leased lane")
    };
    assert!((1..=2).contains(&before), "{before}: its key's first one, and what else is in the lane");
    assert_eq!(name, "worker of t");
    assert_eq!(bench.inspect.cancel(id(1), "op").await.unwrap(), Cancelled::MayBeInFlight { worker });
    let lanes = bench.inspect.lanes("t").await.unwrap();
    assert_eq!(lanes.len(), 64);
    assert!(lanes.iter().all(|lane| lane.owner == Some(worker) && !lane.expired && lane.epoch == 1));
    assert!(lanes.iter().all(|lane| lane.name.as_deref() == Some("worker of t")));
    bench.inspect.set_paused("t", true, "op").await.unwrap();
    seen.push(bench.picture("t").await);
    bench.inspect.set_paused("t", false, "op").await.unwrap();
    seen.push(bench.picture("t").await);
}

pub(crate) fn failure(cause: Cause) -> Failure {
    Failure::new(cause, "no luck")
}

pub(crate) fn park(reason: Reason, due: Due) -> Change {
    let failure = (reason != Reason::Behind).then(|| failure(Cause::Transient));
    Change::Park { reason, due, attempts: Attempts { failures: 2, crashes: 1 }, failure }
}

pub(crate) fn bury(diverts: bool) -> Change {
    let attempts = Attempts { failures: 3, crashes: 0 };
    Change::Bury { attempts, failure: failure(Cause::Rejected), diverts }
}

async fn parks_and_dies(bench: &Bench, worker: &Leased, seen: &mut Vec<String>) {
    bench.settle(worker, 1, park(Reason::Retry, Due::In(HOUR))).await;
    bench.settle(worker, 2, park(Reason::Behind, Due::Never)).await;
    bench.settle(worker, 3, bury(true)).await;
    bench.settle(worker, 4, Change::Publish).await;
    let far = Timestamp::from_micros(4_000_000_000_000_000);
    bench.settle(worker, 5, park(Reason::Delayed, Due::At(far))).await;
    seen.push(bench.picture("t").await);
    let first = bench.list("t", EventState::Failed).await.remove(0);
    let rest = ListQuery {
        target: "t".to_owned(),
        state: EventState::Failed,
        after: first.event.position,
        limit: 1,
    };
    let rest = bench.inspect.list(&rest).await.unwrap();
    assert_eq!(rest.iter().map(|listed| number(listed.event.event_id)).collect::<Vec<_>>(), [2]);
    assert!(bench.inspect.list(&ListQuery { limit: 0, ..all(EventState::Dead) }).await.unwrap().is_empty());
}

fn all(state: EventState) -> ListQuery {
    ListQuery { target: "t".to_owned(), state, after: 0, limit: 100 }
}

fn redrive(selection: Selection, limit: u32) -> Redrive {
    Redrive { selection, limit, dry_run: false, by: "op".to_owned() }
}

fn of_key(key: &str) -> Selection {
    Selection::Key { target: "t".to_owned(), key: key.to_owned() }
}

async fn diverted_key_comes_back_in_parts(bench: &Bench, worker: &Leased, seen: &mut Vec<String>) {
    bench.enqueue(7, event("b")).await;
    bench.enqueue(8, event("b")).await;
    seen.push(bench.fetched("t").await);
    seen.push(bench.picture("t").await);
    bench.settle(worker, 7, bury(false)).await;
    bench.settle(worker, 8, bury(false)).await;
    let dry = Redrive { dry_run: true, ..redrive(of_key("b"), 10) };
    assert_eq!(bench.inspect.redrive(&dry).await.unwrap(), Redriven { dead: 3, parked: 0 });
    let done = bench.inspect.redrive(&redrive(of_key("b"), 2)).await.unwrap();
    assert_eq!(done, Redriven { dead: 2, parked: 0 });
    bench.enqueue(9, event("b")).await;
    seen.push(bench.picture("t").await);
    seen.push(bench.fetched("t").await);
    // It fails again, and the next one of its key is parked above the marker.
    bench.settle(worker, 3, park(Reason::Retry, Due::In(HOUR))).await;
    bench.settle(worker, 9, park(Reason::Behind, Due::Never)).await;
    seen.push(bench.picture("t").await);
    let done = bench.inspect.redrive(&redrive(Selection::Event(id(3)), 10)).await.unwrap();
    assert_eq!(done, Redriven { dead: 0, parked: 1 });
    bench.settle(worker, 3, Change::Publish).await;
    bench.settle(worker, 7, Change::Publish).await;
    // The marker has come up: it takes along what was parked behind it.
    let fetched = bench.fetched("t").await;
    assert!(fetched.contains("8 Diverted; 9 Behind;"), "{fetched}");
    seen.push(fetched);
    let done = bench.inspect.redrive(&redrive(of_key("b"), 10)).await.unwrap();
    assert_eq!(done, Redriven { dead: 1, parked: 0 });
    let fetched = bench.fetched("t").await;
    assert!(fetched.contains("8 Behind; 9 Behind;"), "{fetched}");
    seen.push(bench.picture("t").await);
    bench.settle(worker, 8, Change::Publish).await;
    bench.settle(worker, 9, Change::Publish).await;
    seen.push(bench.picture("t").await);
}

async fn blocked_key_goes_on(bench: &Bench, worker: &Leased, seen: &mut Vec<String>) {
    let owner = worker.member.worker;
    let done = bench.inspect.redrive(&redrive(Selection::Target("t".to_owned()), 10)).await.unwrap();
    assert_eq!(done, Redriven { dead: 0, parked: 1 });
    seen.push(bench.picture("t").await);
    // The first of its key is due, and what is behind goes with it.
    let cancelled = bench.inspect.cancel(id(2), "op").await.unwrap();
    assert_eq!(cancelled, Cancelled::MayBeInFlight { worker: owner });
    bench.settle(worker, 1, park(Reason::Blocked, Due::Never)).await;
    seen.push(bench.picture("t").await);
    assert_eq!(bench.inspect.cancel(id(1), "op").await.unwrap(), Cancelled::Yes);
    seen.push(bench.picture("t").await);
    seen.push(bench.fetched("t").await);
    assert_eq!(bench.inspect.cancel(id(5), "op").await.unwrap(), Cancelled::Yes);
    bench.settle(worker, 2, Change::Publish).await;
    assert_eq!(bench.inspect.cancel(id(2), "op").await.unwrap(), Cancelled::NoSuchEvent);
}

async fn purges(bench: &Bench, worker: &Leased, seen: &mut Vec<String>) {
    let published = Purge::Published { target: "t".to_owned(), older_than: Duration::ZERO };
    let kept = Purge::Published { target: "t".to_owned(), older_than: Duration::MAX };
    bench.wait(INSTANT).await;
    assert_eq!(bench.inspect.purge(&kept, 10).await.unwrap(), 0);
    assert_eq!(bench.inspect.purge(&published, 2).await.unwrap(), 2);
    seen.push(bench.picture("t").await);
    assert_eq!(bench.inspect.purge(&published, 100).await.unwrap(), 4);

    for number in 10..=12 {
        bench.enqueue(number, event("d")).await;
    }
    bench.settle(worker, 10, bury(true)).await;
    bench.wait(INSTANT).await;
    bench.settle(worker, 11, bury(false)).await;
    bench.wait(INSTANT).await;
    let dead = Purge::Dead { target: "t".to_owned(), older_than: Duration::ZERO };
    assert_eq!(bench.inspect.purge(&dead, 1).await.unwrap(), 1);
    let fetched = bench.fetched("t").await;
    assert!(fetched.contains("12 Diverted;"), "what is dead still diverts its key: {fetched}");
    seen.push(bench.picture("t").await);
    assert_eq!(bench.inspect.purge(&dead, 10).await.unwrap(), 1);
    let fetched = bench.fetched("t").await;
    assert_eq!(fetched, "parked: hot: 12 Free;");
    bench.settle(worker, 12, Change::Publish).await;
}

async fn without_a_key(bench: &Bench, worker: &Leased, seen: &mut Vec<String>) {
    bench.enqueue(13, NewEvent::new("topic").target("t")).await;
    // Another key's marker must not divert a key that only skips.
    bench.enqueue(14, event("e")).await;
    bench.enqueue(15, event("f")).await;
    bench.enqueue(16, event("f")).await;
    bench.settle(worker, 13, bury(false)).await;
    bench.settle(worker, 14, bury(true)).await;
    bench.settle(worker, 15, bury(false)).await;
    bench.settle(worker, 16, bury(false)).await;
    bench.inspect.redrive(&redrive(Selection::Event(id(15)), 10)).await.unwrap();
    seen.push(bench.picture("t").await);
    let done = bench.inspect.redrive(&redrive(Selection::Event(id(13)), 10)).await.unwrap();
    assert_eq!(done, Redriven { dead: 1, parked: 0 });
    seen.push(bench.picture("t").await);
    seen.push(bench.fetched("t").await);
    let cancelled = bench.inspect.cancel(id(13), "op").await.unwrap();
    assert_eq!(cancelled, Cancelled::MayBeInFlight { worker: worker.member.worker });
}

async fn same_id_again(bench: &Bench, worker: &Leased, seen: &mut Vec<String>) {
    for _ in 0..2 {
        bench.enqueue(20, event("g")).await;
        bench.settle(worker, 20, park(Reason::Retry, Due::In(HOUR))).await;
        bench.settle(worker, 20, bury(false)).await;
    }
    seen.push(bench.picture("t").await);
    let done = bench.inspect.redrive(&redrive(Selection::Event(id(20)), 10)).await.unwrap();
    assert_eq!(done, Redriven { dead: 2, parked: 0 });
    seen.push(bench.fetched("t").await);
}

async fn abandoned(bench: &Bench, seen: &mut Vec<String>) {
    bench.enqueue(30, NewEvent::new("topic").target("v")).await;
    let lost = bench.lease("v", Duration::from_millis(100)).await;
    bench.wait(Duration::from_millis(200)).await;
    seen.push(bench.picture("v").await);
    let Explanation::Abandoned { worker, .. } = bench.inspect.explain(id(30)).await.unwrap() else {
        panic!("its worker is lost")
    };
    assert_eq!(worker, lost.member.worker);
    assert!(bench.inspect.lanes("v").await.unwrap().iter().all(|lane| lane.expired));
    assert_eq!(bench.inspect.cancel(id(30), "op").await.unwrap(), Cancelled::Yes);
    bench.enqueue(31, NewEvent::new("topic").target("w")).await;
    seen.push(bench.picture("w").await);
}
