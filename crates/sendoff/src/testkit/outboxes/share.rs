//! Workers share the lanes as they come and go.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::{LEASE, LONG, Owner, claim, deliver, enqueue, loose, settle, start, stop, until, worker};
use crate::event::NewEvent;
use crate::outbox::{LANES, Lane, Member, Outcome, Worker};
use crate::testkit::StoreHarness;

async fn sharing<H: StoreHarness>(harness: &H) -> Worker {
    start(harness.store(), |config| config.lease = LEASE).await
}

/// Every lane has one owner, and the numbers differ by one at most.
fn is_even(workers: &[Worker]) -> bool {
    let counts: Vec<usize> = workers.iter().map(|worker| worker.lanes().len()).collect();
    let all: HashSet<Lane> = workers.iter().flat_map(Worker::lanes).collect();
    let (most, least) = (counts.iter().max(), counts.iter().min());
    let spread = most.zip(least).map_or(0, |(most, least)| most - least);
    counts.iter().sum::<usize>() == usize::from(LANES) && all.len() == usize::from(LANES) && spread <= 1
}

pub(crate) async fn a_lone_worker_has_every_lane_at_once<H: StoreHarness>(harness: Arc<H>) {
    let worker = worker(&*harness).await;
    assert_eq!(worker.lanes().len(), usize::from(LANES));
    assert_eq!(worker.stats().taken, u64::from(LANES));
}

pub(crate) async fn two_workers_share_and_one_is_left_with_all<H: StoreHarness>(harness: Arc<H>) {
    let mut workers = vec![sharing(&*harness).await, sharing(&*harness).await];
    until("two workers have half of the lanes each", || async { is_even(&workers) }).await;
    assert_eq!(workers[0].lanes().len(), 32);
    let gone = workers.pop().unwrap();
    stop(gone).await;
    until("the last worker has all lanes", || async { is_even(&workers) }).await;
    assert_eq!(workers[0].stats().lost, 0, "nobody was lost");
    let lanes = harness.inspect().lanes(crate::DEFAULT_TARGET).await.unwrap();
    assert!(lanes.iter().all(|lane| lane.crashes == 0), "a hand-over is no crash");
}

pub(crate) async fn many_workers_have_equal_shares<H: StoreHarness>(harness: Arc<H>) {
    let mut workers = Vec::new();
    for count in [3, 5] {
        while workers.len() < count {
            workers.push(sharing(&*harness).await);
        }
        until("the shares differ by one at most", || async { is_even(&workers) }).await;
    }
    for worker in workers.drain(2..) {
        stop(worker).await;
    }
    until("the shares differ by one at most", || async { is_even(&workers) }).await;
}

pub(crate) async fn two_workers_of_one_name_share_no_lane<H: StoreHarness>(harness: Arc<H>) {
    let twin = |config: &mut crate::outbox::WorkerConfig| {
        config.lease = LEASE;
        "twin".clone_into(&mut config.name);
    };
    let workers = [start(harness.store(), twin).await, start(harness.store(), twin).await];
    assert_ne!(workers[0].id(), workers[1].id());
    until("both have half of the lanes", || async { is_even(&workers) }).await;
    let events: Vec<NewEvent> = (0..200).map(|number| loose(&number.to_string())).collect();
    enqueue(&*harness, &events).await;
    let (first, second) = (claim_all(&workers[0]).await, claim_all(&workers[1]).await);
    assert!(!first.is_empty() && !second.is_empty(), "both work");
    assert!(first.is_disjoint(&second), "an event was handed out twice");
    assert_eq!(first.len() + second.len(), 200);
}

async fn claim_all(worker: &Worker) -> HashSet<i64> {
    worker.claim(10_000).await.unwrap().iter().map(|claimed| claimed.event.position).collect()
}

/// Nobody else gets a lane while an event of it is under way.
pub(crate) async fn a_lane_is_handed_over_when_nothing_of_it_is_in_flight<H: StoreHarness>(harness: Arc<H>) {
    let first = sharing(&*harness).await;
    let events: Vec<NewEvent> = (0..640).map(|number| loose(&number.to_string())).collect();
    enqueue(&*harness, &events).await;
    let claimed = claim(&first, 640).await;
    let second = sharing(&*harness).await;
    // By the time it has ticked a few times it would have taken what it could get.
    harness.pass(LEASE / 2).await;
    tokio::time::sleep(LEASE / 4).await;
    assert!(second.claim(10_000).await.unwrap().is_empty(), "events in flight were handed out again");
    let summary = settle(&first, &claimed, &Outcome::Published).await;
    assert_eq!((summary.applied, summary.stale), (640, 0), "lanes were lost before they were given");
    let workers = [first, second];
    until("the lanes are handed over", || async { is_even(&workers) }).await;
    assert_eq!(workers[0].stats().lost, 0);
}

pub(crate) async fn a_worker_that_lost_its_registration_joins_again<H: StoreHarness>(harness: Arc<H>) {
    let worker = sharing(&*harness).await;
    let member = Member {
        worker: worker.id(),
        name: "worker".to_owned(),
        target: crate::DEFAULT_TARGET.to_owned(),
        lease: LEASE,
        scope: Default::default(),
    };
    // As if somebody had cleared the register behind its back.
    harness.store().leave(&member).await.unwrap();
    let inspect = harness.inspect();
    let has_all = || async {
        let lanes = inspect.lanes(crate::DEFAULT_TARGET).await.unwrap();
        lanes.iter().all(|lane| lane.owner == Some(worker.id())) && worker.lanes().len() == usize::from(LANES)
    };
    until("it joins again and leases its lanes", has_all).await;
    enqueue(&*harness, &[loose("one")]).await;
    deliver(&worker, 1).await;
}

pub(crate) async fn a_worker_keeps_its_leases_for_as_long_as_it_lives<H: StoreHarness>(harness: Arc<H>) {
    let mut other = Owner::watching(harness.store());
    let worker = start(harness.store(), |config| config.lease = LEASE).await;
    enqueue(&*harness, &[loose("one")]).await;
    let claimed = claim(&worker, 1).await;
    let began = std::time::Instant::now();
    while began.elapsed() < LEASE * 4 / 3 {
        assert!(other.take(LANES).await.is_empty(), "a live worker lost a lane");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let summary = settle(&worker, &claimed, &Outcome::Published).await;
    assert_eq!((summary.applied, worker.stats().lost), (1, 0));
}

pub(crate) async fn a_worker_that_stops_leaves_nothing_behind<H: StoreHarness>(harness: Arc<H>) {
    for _ in 0..10 {
        let worker = start(harness.store(), |config| config.lease = Duration::from_millis(300)).await;
        stop(worker).await;
        let lanes = harness.inspect().lanes(crate::DEFAULT_TARGET).await.unwrap();
        assert_eq!(lanes.len(), usize::from(LANES));
        assert!(lanes.iter().all(|lane| lane.owner.is_none()), "a worker that stopped has a lane");
    }
    let owner = Owner::join(harness.store(), LONG).await;
    let census = owner.store.census(&owner.member).await.unwrap();
    let registered: Vec<_> = census.workers.iter().map(|peer| peer.worker).collect();
    assert_eq!(registered, [owner.member.worker], "a worker that stopped is registered");
}

pub(crate) async fn a_stop_waits_for_what_is_in_flight<H: StoreHarness>(harness: Arc<H>) {
    let events = [loose("one"), loose("two")];
    enqueue(&*harness, &events).await;
    let worker = Arc::new(worker(&*harness).await);
    let claimed = claim(&worker, 2).await;
    let stopping = tokio::spawn({
        let worker = Arc::clone(&worker);
        async move { worker.stop(Duration::from_secs(10)).await.unwrap() }
    });
    enqueue(&*harness, &events).await;
    until("a worker that stops hands out nothing more", || async {
        let more = worker.claim(10).await.unwrap();
        settle(&worker, &more, &Outcome::Release).await;
        more.is_empty()
    })
    .await;
    settle(&worker, &claimed[..1], &Outcome::Published).await;
    assert!(!stopping.is_finished(), "it went with an event in flight");
    let summary = settle(&worker, &claimed[1..], &Outcome::Published).await;
    assert_eq!((summary.applied, summary.stale), (1, 0), "its lanes are its own until all is settled");
    assert_eq!(stopping.await.unwrap().applied, 2);
    let next = super::worker(&*harness).await;
    deliver(&next, 2).await;
}

pub(crate) async fn what_is_not_settled_within_the_grace_is_delivered_again<H: StoreHarness>(
    harness: Arc<H>,
) {
    enqueue(&*harness, &[loose("one"), loose("two")]).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 2).await;
    let stats = worker.stop(Duration::from_millis(50)).await.unwrap();
    assert_eq!((stats.claimed, stats.applied), (2, 0));
    let next = super::worker(&*harness).await;
    let again = claim(&next, 2).await;
    assert!(again.iter().zip(&claimed).all(|(again, before)| again.token.epoch > before.token.epoch));
    let summary = settle(&worker, &claimed, &Outcome::Published).await;
    assert_eq!((summary.applied, summary.stale), (0, 2), "what it says now comes too late");
    settle(&next, &again, &Outcome::Published).await;
}
