//! Workers that may have some of the lanes.

use std::collections::HashSet;
use std::sync::Arc;

use super::{LEASE, LONG, Owner, PATIENCE, enqueue, event, lose, settle, start, stop, until, worker};
use crate::DEFAULT_TARGET;
use crate::error::StoreErrorKind;
use crate::event::{Event, EventId, NewEvent};
use crate::outbox::{Explanation, LANES, LaneSet, Member, Outcome, Scope, Worker, WorkerConfig, WorkerId};
use crate::testkit::StoreHarness;

async fn ranged<H: StoreHarness>(harness: &H, lanes: &str) -> Worker {
    let lanes = lanes.parse().unwrap();
    start(harness.store(), |config| (config.lease, config.lanes) = (LEASE, lanes)).await
}

fn has(worker: &Worker, lanes: &str) -> bool {
    worker.lanes().into_iter().collect::<LaneSet>() == lanes.parse().unwrap()
}

/// Events of so many keys, which are in most lanes.
async fn many_keys<H: StoreHarness>(harness: &H, count: usize) -> Vec<EventId> {
    let events: Vec<NewEvent> = (0..count).map(|number| event(&format!("key-{number}"), "")).collect();
    enqueue(harness, &events).await
}

/// All of them deliver until so many events came; by worker.
async fn deliver_together(workers: &[&Worker], count: usize) -> Vec<Vec<Event>> {
    let began = std::time::Instant::now();
    let mut delivered = vec![Vec::new(); workers.len()];
    while delivered.iter().map(Vec::len).sum::<usize>() < count {
        assert!(began.elapsed() < PATIENCE, "not every event was delivered: {delivered:?}");
        for (worker, delivered) in workers.iter().zip(&mut delivered) {
            let claimed = worker.claim(10_000).await.unwrap();
            let summary = settle(worker, &claimed, &Outcome::Published).await;
            assert_eq!((summary.applied, summary.stale), (claimed.len(), 0));
            delivered.extend(claimed.into_iter().map(|claimed| claimed.event));
        }
    }
    let ids: HashSet<EventId> = delivered.iter().flatten().map(|event| event.event_id).collect();
    assert_eq!(ids.len(), count, "an event was delivered twice");
    delivered
}

pub(crate) async fn workers_of_two_ranges_deliver_their_own_lanes<H: StoreHarness>(harness: Arc<H>) {
    let (low, high) = (ranged(&*harness, "0..15").await, ranged(&*harness, "16..63").await);
    assert!(has(&low, "0..15") && has(&high, "16..63"), "a range is leased at once, whoever else is there");
    many_keys(&*harness, 300).await;
    let delivered = deliver_together(&[&low, &high], 300).await;
    assert!(delivered[0].iter().all(|event| event.lane <= 15) && !delivered[0].is_empty());
    assert!(delivered[1].iter().all(|event| event.lane > 15) && !delivered[1].is_empty());
    assert_eq!((low.stats().given, high.stats().given), (0, 0), "nobody had what was another's");
}

pub(crate) async fn workers_of_one_range_share_it<H: StoreHarness>(harness: Arc<H>) {
    let workers = [ranged(&*harness, "0..7,12").await, ranged(&*harness, "0..7,12").await];
    let is_shared = || async {
        let all: LaneSet = workers.iter().flat_map(Worker::lanes).collect();
        let counts = (workers[0].lanes().len(), workers[1].lanes().len());
        all == "0..7,12".parse().unwrap() && matches!(counts, (4, 5) | (5, 4))
    };
    until("workers of one range have half of it each", is_shared).await;
    let rest = ranged(&*harness, "8..11,13..63").await;
    many_keys(&*harness, 300).await;
    let delivered = deliver_together(&[&workers[0], &workers[1], &rest], 300).await;
    assert!(delivered.iter().all(|delivered| !delivered.is_empty()), "all of them work");
}

pub(crate) async fn workers_without_a_range_have_the_rest_and_what_is_left_behind<H: StoreHarness>(
    harness: Arc<H>,
) {
    let any = start(harness.store(), |config| config.lease = LEASE).await;
    assert!(has(&any, "0..63"));
    let fixed = ranged(&*harness, "0..31").await;
    until("a range goes to who has no other", || async { has(&fixed, "0..31") && has(&any, "32..63") }).await;
    assert_eq!(any.stats().lost, 0);
    stop(fixed).await;
    until("what a range leaves behind is taken", || async { has(&any, "0..63") }).await;
}

pub(crate) async fn a_lane_that_nobody_may_have_is_said_to_be_so<H: StoreHarness>(harness: Arc<H>) {
    let ids = many_keys(&*harness, 300).await;
    let lost = worker(&*harness).await;
    lose(&*harness, lost).await;
    let low = ranged(&*harness, "0..31").await;
    let inspect = harness.inspect();
    let lanes = inspect.lanes(DEFAULT_TARGET).await.unwrap();
    assert!(lanes.iter().all(|lane| lane.covered == (lane.lane <= 31)));
    let mut uncovered = 0;
    for id in &ids {
        match inspect.explain(*id).await.unwrap() {
            Explanation::Uncovered { lane } => {
                assert!(lane > 31);
                uncovered += 1;
            }
            Explanation::Leased { lane, worker, .. } => assert!(lane <= 31 && worker == low.id()),
            other => panic!("{other:?}"),
        }
    }
    deliver_together(&[&low], ids.len() - uncovered).await;
    assert!(low.claim(10_000).await.unwrap().is_empty(), "a lane that it may not have was read");
    stop(low).await;
    let lanes = inspect.lanes(DEFAULT_TARGET).await.unwrap();
    assert!(lanes.iter().all(|lane| !lane.covered), "nobody is there");
    let high = ranged(&*harness, "32..63").await;
    deliver_together(&[&high], uncovered).await;
}

pub(crate) async fn no_lane_is_taken_but_those_that_are_wanted<H: StoreHarness>(harness: Arc<H>) {
    let wanted: LaneSet = "3,10..12".parse().unwrap();
    let mut lost = Owner::join(harness.store(), LONG).await;
    lost.take(11).await;
    lost.lapse(&*harness).await;
    let owner = Owner::join(harness.store(), LONG).await;
    let take = |lanes: LaneSet, most| {
        let (store, member) = (owner.store.clone(), owner.member.clone());
        async move {
            let got = store.take(&member, lanes, most).await.unwrap();
            got.iter().map(|leased| (leased.token.lane, leased.crashes)).collect::<Vec<_>>()
        }
    };
    assert_eq!(take(wanted, 2).await, [(11, 0), (12, 0)], "released ones first");
    assert_eq!(take(wanted, LANES).await, [(3, 1), (10, 1)], "then those of the lost");
    assert_eq!(take(wanted, LANES).await, []);
    assert_eq!(take(LaneSet::NONE, LANES).await, []);
    assert_eq!(take(LaneSet::ALL, LANES).await.len(), usize::from(LANES) - 4);
}

pub(crate) async fn a_range_is_known_to_the_others_for_as_long_as_its_worker_is<H: StoreHarness>(
    harness: Arc<H>,
) {
    let usual = Owner::join(harness.store(), LONG).await;
    let lanes: LaneSet = "0..7,12".parse().unwrap();
    let scope = Scope { lanes, exclusive: true, relay: Some(WorkerId::generate().0) };
    let ranged = Member { worker: WorkerId::generate(), scope, ..usual.member.clone() };
    for _ in 0..2 {
        harness.store().join(&ranged).await.unwrap();
        // Said twice, or forgotten and said anew, it is the same.
        harness.store().join(&ranged).await.unwrap();
        let census = harness.store().census(&usual.member).await.unwrap();
        let mut known: Vec<_> = census.workers.iter().map(|peer| (peer.worker, peer.scope)).collect();
        known.sort_by_key(|(worker, _)| *worker != ranged.worker);
        assert_eq!(known, [(ranged.worker, scope), (usual.member.worker, Scope::default())]);
        let infos = harness.inspect().workers().await.unwrap();
        let info = infos.iter().find(|info| info.worker == ranged.worker).unwrap();
        assert_eq!(info.scope, scope);
        let shown = serde_json::to_value(info).unwrap();
        assert_eq!((&shown["range"], &shown["exclusive"]), (&"0..7,12".into(), &true.into()));
        harness.store().leave(&ranged).await.unwrap();
        let census = harness.store().census(&usual.member).await.unwrap();
        assert_eq!(census.workers.len(), 1);
    }
}

pub(crate) async fn a_worker_that_may_have_no_lane_does_not_start<H: StoreHarness>(harness: Arc<H>) {
    let config = WorkerConfig { lanes: LaneSet::NONE, ..WorkerConfig::default() };
    let error = Worker::start(harness.store(), config).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
    assert!(harness.inspect().workers().await.unwrap().is_empty());
}
