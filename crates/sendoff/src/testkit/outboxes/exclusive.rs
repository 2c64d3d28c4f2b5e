//! Exclusive workers: one works, the others stand by.

use std::sync::Arc;
use std::time::Duration;

use super::{LEASE, LONG, Owner, Patience, claim, deliver, enqueue, loose, lose, settle, start, stop, until};
use crate::DEFAULT_TARGET;
use crate::event::NewEvent;
use crate::outbox::{LANES, LaneSet, Leased, Outcome, Worker};
use crate::testkit::StoreHarness;

async fn exclusive<H: StoreHarness>(harness: &H, lanes: LaneSet) -> Worker {
    exclusive_for(harness, lanes, LEASE).await
}

async fn exclusive_for<H: StoreHarness>(harness: &H, lanes: LaneSet, lease: Duration) -> Worker {
    let change = |config: &mut crate::outbox::WorkerConfig| {
        config.lease = lease;
        config.exclusive = true;
        config.lanes = lanes;
    };
    start(harness.store(), change).await
}

fn lanes(worker: &Worker) -> LaneSet {
    worker.lanes().into_iter().collect()
}

/// For as long as a worker that shares would have taken several times to get lanes, who stands by has none.
async fn stands_by(worker: &Worker) {
    let began = std::time::Instant::now();
    while began.elapsed() < LEASE / 2 {
        assert!(worker.lanes().is_empty(), "two exclusive workers have lanes");
        assert!(worker.claim(100).await.unwrap().is_empty());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) async fn one_works_and_the_next_takes_over_when_it_stops<H: StoreHarness>(harness: Arc<H>) {
    let first = exclusive_for(&*harness, LaneSet::ALL, LONG).await;
    assert_eq!(lanes(&first), LaneSet::ALL, "who comes first works at once");
    let second = exclusive(&*harness, LaneSet::ALL).await;
    let events: Vec<NewEvent> = (0..200).map(|number| loose(&number.to_string())).collect();
    enqueue(&*harness, &events).await;
    let claimed = claim(&first, 200).await;
    stands_by(&second).await;
    settle(&first, &claimed, &Outcome::Published).await;
    assert_eq!(first.stats().given, 0, "its lanes stay its own");
    enqueue(&*harness, &events).await;
    stop(first).await;
    let left = Patience::new("the next takes over at once");
    while lanes(&second) != LaneSet::ALL {
        assert!(left.began.elapsed() < LONG / 2, "it waited for a lease that was given back");
        left.wait().await;
    }
    deliver(&second, 200).await;
    let infos = harness.inspect().lanes(DEFAULT_TARGET).await.unwrap();
    assert!(infos.iter().all(|lane| lane.crashes == 0), "a hand-over is no crash");
}

pub(crate) async fn the_next_takes_over_when_one_is_lost<H: StoreHarness>(harness: Arc<H>) {
    let first = exclusive(&*harness, LaneSet::ALL).await;
    let second = exclusive(&*harness, LaneSet::ALL).await;
    enqueue(&*harness, &[loose("one"), loose("two")]).await;
    let claimed = claim(&first, 2).await;
    stands_by(&second).await;
    lose(&*harness, first).await;
    until("the next takes over", || async { lanes(&second) == LaneSet::ALL }).await;
    let again = claim(&second, 2).await;
    assert!(again.iter().zip(&claimed).all(|(again, before)| again.token.epoch > before.token.epoch));
    settle(&second, &again, &Outcome::Published).await;
}

pub(crate) async fn of_many_that_start_at_once_one_works<H: StoreHarness>(harness: Arc<H>) {
    let mut starting = tokio::task::JoinSet::new();
    for _ in 0..5 {
        let harness = Arc::clone(&harness);
        starting.spawn(async move { exclusive(&*harness, LaneSet::ALL).await });
    }
    let mut workers = starting.join_all().await;
    for left in (1..=5).rev() {
        until("one of them has all lanes", || async {
            workers.iter().any(|worker| lanes(worker) == LaneSet::ALL)
        })
        .await;
        let working: Vec<usize> = (0..left).filter(|index| !workers[*index].lanes().is_empty()).collect();
        assert_eq!(working.len(), 1, "more than one has lanes");
        stop(workers.swap_remove(working[0])).await;
    }
}

pub(crate) async fn one_works_in_each_range<H: StoreHarness>(harness: Arc<H>) {
    let (low, high): (LaneSet, LaneSet) = ("0..15".parse().unwrap(), "16..63".parse().unwrap());
    let mut workers = Vec::new();
    for range in [low, high, low, high] {
        workers.push(exclusive(&*harness, range).await);
    }
    assert_eq!((lanes(&workers[0]), lanes(&workers[1])), (low, high));
    stands_by(&workers[2]).await;
    stands_by(&workers[3]).await;
    stop(workers.swap_remove(0)).await;
    // The last is where the first was.
    until("its own range is taken over", || async { lanes(&workers[2]) == low }).await;
    stands_by(&workers[0]).await;
    assert_eq!(lanes(&workers[1]), high, "the other range has nothing to do with it");
}

pub(crate) async fn who_loses_what_they_go_by_stops_at_once<H: StoreHarness>(harness: Arc<H>) {
    let worker = exclusive(&*harness, LaneSet::ALL).await;
    let baton = harness.inspect().lanes(DEFAULT_TARGET).await.unwrap().swap_remove(0);
    let mut thief = Owner::watching(harness.store());
    let mut robbed = Owner::watching(harness.store());
    robbed.member.worker = worker.id();
    let token = crate::outbox::Token { lane: 0, epoch: baton.epoch, worker: worker.id() };
    robbed.leased.push(Leased { token, floor: baton.floor, crashes: 0, named: None });
    robbed.lapse(&*harness).await;
    // The worker may have renewed it meanwhile.
    let patience = Patience::new("a lease that has ended is taken");
    while thief.store.take(&thief.member, LaneSet::one(0), 1).await.unwrap().is_empty() {
        robbed.lapse(&*harness).await;
        patience.wait().await;
    }
    until("a worker without its baton gives back the rest", || async { worker.lanes().is_empty() }).await;
    enqueue(&*harness, &[loose("one")]).await;
    stands_by(&worker).await;
    assert_eq!(thief.take(LANES).await.len(), usize::from(LANES) - 1, "they were given back");
    thief.leave().await;
    until("it works again", || async { lanes(&worker) == LaneSet::ALL }).await;
    deliver(&worker, 1).await;
}

/// Not what it is for: but no lane is left without an owner.
pub(crate) async fn beside_workers_that_share_it_has_its_share<H: StoreHarness>(harness: Arc<H>) {
    let sharing = start(harness.store(), |config| config.lease = LEASE).await;
    let workers = [exclusive(&*harness, LaneSet::ALL).await, exclusive(&*harness, LaneSet::ALL).await];
    let is_even = || async {
        let (mine, others) = (lanes(&sharing), [lanes(&workers[0]), lanes(&workers[1])]);
        let working = others[0].with(others[1]);
        let is_one = others.iter().filter(|lanes| lanes.is_empty()).count() == 1;
        is_one
            && mine.len() == 32
            && working.len() == 32
            && mine.with(working) == LaneSet::ALL
            && working.contains(0)
    };
    until("one of the exclusive ones has half of the lanes, with the baton", is_even).await;
}
