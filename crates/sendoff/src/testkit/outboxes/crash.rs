//! Workers that are lost, and events that lose them.

use std::sync::Arc;
use std::time::Duration;

use super::dead::all_dead;
use super::{
    HOUR, LONG, Owner, claim, deliver, enqueue, event, failure, lane_mates, loose, lose, names, nothing_more,
    numbered, settle, sorted, start, stop, text, texts, until, worker,
};
use crate::event::Attempts;
use crate::outbox::{
    Cause, Change, Claimed, Due, EventState, Inspect, OnExhausted, Outcome, Reason, Worker, WorkerConfig,
};
use crate::testkit::StoreHarness;

/// So many owners of all lanes are lost, one after the other.
async fn lose_owners<H: StoreHarness>(harness: &H, count: usize) {
    for _ in 0..count {
        Owner::of_all(harness, LONG).await.lapse(harness).await;
    }
}

/// A crash is soon tried again, and two are one too many.
fn strict(config: &mut WorkerConfig) {
    config.crash_pause = Duration::from_millis(60);
    config.crashes_max = 2;
}

async fn crashes(inspect: &dyn Inspect) -> Vec<u32> {
    let lanes = inspect.lanes(crate::DEFAULT_TARGET).await.unwrap();
    lanes.iter().map(|lane| lane.crashes).collect()
}

/// Starts a worker that has all lanes, when their last owner's leases have ended.
async fn successor<H: StoreHarness>(harness: &H, change: fn(&mut WorkerConfig)) -> Worker {
    let worker = start(harness.store(), change).await;
    until("the lanes of a lost worker are taken over", || async { worker.lanes().len() == 64 }).await;
    worker
}

pub(crate) async fn what_a_lost_worker_had_in_hand_is_delivered_again<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &[numbered("a", 3), vec![loose("loose")]].concat()).await;
    let lost = start(harness.store(), strict).await;
    let claimed = claim(&lost, 4).await;
    lose(&*harness, lost).await;
    let worker = worker(&*harness).await;
    let again = claim(&worker, 4).await;
    assert_eq!(sorted(again.iter().map(|one| &one.event)), sorted(claimed.iter().map(|one| &one.event)));
    assert!(again.iter().all(|one| one.event.attempts == Attempts::default()), "one crash names nobody");
    settle(&worker, &again, &Outcome::Published).await;
    assert_eq!(worker.stats().named, 0, "one crash is no pattern");
}

pub(crate) async fn crashes_are_forgotten_when_the_lane_got_past_them<H: StoreHarness>(harness: Arc<H>) {
    let all: Vec<_> = (0..100).map(|number| loose(&number.to_string())).collect();
    enqueue(&*harness, &all).await;
    lose_owners(&*harness, 1).await;
    let worker = worker(&*harness).await;
    let inspect = harness.inspect();
    assert!(crashes(&*inspect).await.iter().all(|crashes| *crashes == 1), "each lane counts a lost owner");
    let claimed = claim(&worker, 100).await;
    assert!(crashes(&*inspect).await.contains(&1), "nothing has been got past yet");
    settle(&worker, &claimed, &Outcome::Published).await;
    let is_calm = || async {
        nothing_more(&worker).await;
        crashes(&*inspect).await.iter().all(|crashes| *crashes == 0)
    };
    until("crashes are forgotten once what was in hand is settled", is_calm).await;
}

/// From the second crash in a row: one event in flight, written down; until what was there is done.
pub(crate) async fn a_lane_that_lost_two_owners_is_worked_carefully<H: StoreHarness>(harness: Arc<H>) {
    let mates = lane_mates(&*harness, 4).await;
    let all: Vec<_> = mates.iter().map(|key| event(key, key)).collect();
    enqueue(&*harness, &all).await;
    lose_owners(&*harness, 2).await;
    let worker = worker(&*harness).await;
    let mut seen = Vec::new();
    for named in 1..=4 {
        let claimed = claim(&worker, 1).await;
        nothing_more(&worker).await;
        assert_eq!(worker.stats().named, named, "it is written down before it is handed out");
        settle(&worker, &claimed, &Outcome::Published).await;
        seen.push(text(&claimed[0].event));
    }
    assert_eq!(seen, mates, "in their order");
    nothing_more(&worker).await;
    assert!(crashes(&*harness.inspect()).await.iter().all(|crashes| *crashes == 0));
    enqueue(&*harness, &all).await;
    let claimed = claim(&worker, 4).await;
    assert_eq!(worker.in_flight(), 4, "full speed again");
    assert_eq!(worker.stats().named, 4, "and nothing written down");
    settle(&worker, &claimed, &Outcome::Published).await;
}

/// A worker lost while it was careful says which event it was.
pub(crate) async fn the_crash_of_a_careful_owner_names_its_event<H: StoreHarness>(harness: Arc<H>) {
    let mates = lane_mates(&*harness, 4).await;
    let ids = enqueue(&*harness, &mates.iter().map(|key| event(key, key)).collect::<Vec<_>>()).await;
    lose_owners(&*harness, 2).await;
    let careful = successor(&*harness, strict).await;
    let claimed = claim(&careful, 1).await;
    assert_eq!(text(&claimed[0].event), mates[0]);
    lose(&*harness, careful).await;
    let worker = successor(&*harness, |config| {
        strict(config);
        config.crash_pause = HOUR;
    })
    .await;
    let others = deliver(&worker, 3).await;
    assert_eq!(texts(&others), mates[1..], "the others of its lane are delivered");
    nothing_more(&worker).await;
    let parked = harness.inspect().get(ids[0]).await.unwrap().unwrap();
    assert_eq!((parked.state, parked.reason), (EventState::Failed, Some(Reason::Retry)));
    assert_eq!(parked.event.attempts, Attempts { failures: 0, crashes: 1 });
    assert_eq!(parked.failure.unwrap().cause, Cause::Crash);
    assert_eq!(worker.stats().named, 0, "the culprit is known: the lane goes at full speed");
}

/// An event that kills its worker ends as a dead letter, and its lane goes on.
pub(crate) async fn an_event_that_kills_its_workers_ends_as_a_dead_letter<H: StoreHarness>(harness: Arc<H>) {
    let mates = lane_mates(&*harness, 3).await;
    let all: Vec<_> = mates.iter().map(|key| event(key, key)).collect();
    let ids = enqueue(&*harness, &all).await;
    lose_owners(&*harness, 2).await;
    let mut delivered = Vec::new();
    // Each worker dies with the first event of the lane in hand, and delivers everything else.
    for killed in 1..=2 {
        let careful = successor(&*harness, strict).await;
        let patience = super::Patience::new("the killer is handed out alone");
        let killer: Claimed = loop {
            let mut claimed = careful.claim(10_000).await.unwrap();
            if let Some(index) = claimed.iter().position(|one| one.event.event_id == ids[0]) {
                assert_eq!(claimed.len(), 1, "it has crashed a worker before, and goes alone");
                break claimed.remove(index);
            }
            settle(&careful, &claimed, &Outcome::Published).await;
            delivered.extend(claimed.into_iter().map(|one| one.event));
            patience.wait().await;
        };
        assert_eq!(killer.event.attempts.crashes, killed - 1);
        lose(&*harness, careful).await;
    }
    let worker = successor(&*harness, strict).await;
    let inspect = harness.inspect();
    let patience = super::Patience::new("an event that kills its workers ends as a dead letter");
    while all_dead(&*inspect).await.is_empty() {
        let claimed = worker.claim(10_000).await.unwrap();
        settle(&worker, &claimed, &Outcome::Published).await;
        delivered.extend(claimed.into_iter().map(|one| one.event));
        patience.wait().await;
    }
    let dead = inspect.get(ids[0]).await.unwrap().unwrap();
    assert_eq!((dead.state, dead.event.attempts.crashes), (EventState::Dead, 2));
    assert_eq!(dead.failure.unwrap().cause, Cause::Crash);
    assert_eq!(texts(&delivered), mates[1..], "the others were delivered");
    let named = worker.stats().named;
    enqueue(&*harness, &all[1..]).await;
    deliver(&worker, 2).await;
    assert_eq!(worker.stats().named, named, "its lane goes on at full speed");
}

/// The lane's other events go on while it waits; then it goes alone.
pub(crate) async fn an_event_that_lost_a_worker_is_tried_alone<H: StoreHarness>(harness: Arc<H>) {
    let mates = lane_mates(&*harness, 2).await;
    enqueue(&*harness, &[event(&mates[0], "suspect"), event(&mates[0], "next")]).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let park = Change::Park {
        reason: Reason::Retry,
        due: Due::In(Duration::ZERO),
        attempts: Attempts { failures: 0, crashes: 1 },
        failure: Some(failure()),
    };
    owner.settle(&[(&rows[0], park)]).await;
    owner.leave().await;
    enqueue(&*harness, &[event(&mates[1], "other")]).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 1).await;
    assert_eq!((text(&claimed[0].event).as_str(), worker.stats().named), ("suspect", 1));
    nothing_more(&worker).await;
    settle(&worker, &claimed, &Outcome::Published).await;
    assert_eq!(sorted(&deliver(&worker, 2).await), ["next", "other"]);
}

pub(crate) async fn without_crashes_nothing_is_written_down<H: StoreHarness>(harness: Arc<H>) {
    let first = worker(&*harness).await;
    enqueue(&*harness, &numbered("a", 4)).await;
    let claimed = claim(&first, 4).await;
    super::fail_first(&first, &claimed, Outcome::retry(Duration::from_millis(20), "no")).await;
    let again = claim(&first, 4).await;
    settle(&first, &again, &Outcome::Release).await;
    let stats = first.stop(Duration::ZERO).await.unwrap();
    let second = worker(&*harness).await;
    assert_eq!(texts(&deliver(&second, 4).await), names("a", 1..=4));
    assert_eq!((stats.named, second.stats().named), (0, 0));
    assert!(crashes(&*harness.inspect()).await.iter().all(|crashes| *crashes == 0));
}

/// The event was settled before its worker was lost: the culprit is another.
pub(crate) async fn an_event_that_was_settled_is_not_accused<H: StoreHarness>(harness: Arc<H>) {
    for policy in [OnExhausted::Skip, OnExhausted::Divert] {
        let ids = enqueue(&*harness, &numbered("a", 1)).await;
        let owner = Owner::of_all(&*harness, LONG).await;
        let rows = owner.hot().await;
        let token = owner.leased(rows[0].event.lane).token;
        assert!(owner.store.name(&owner.member, token, rows[0].event.position).await.unwrap());
        let diverts = policy == OnExhausted::Divert;
        let bury = Change::Bury { attempts: Attempts::default(), failure: failure(), diverts };
        owner.settle(&[(&rows[0], bury)]).await;
        owner.lapse(&*harness).await;
        let worker = start(harness.store(), strict).await;
        until("the lanes are taken over", || async { worker.lanes().len() == 64 }).await;
        enqueue(&*harness, &[event("b", "b1")]).await;
        assert_eq!(texts(&deliver(&worker, 1).await), ["b1"], "nothing of what is dead came back");
        nothing_more(&worker).await;
        let dead = harness.inspect().get(ids[0]).await.unwrap().unwrap();
        assert_eq!((dead.state, dead.event.attempts.crashes), (EventState::Dead, 0), "{policy:?}");
        stop(worker).await;
    }
    // The key of the last one is diverted still.
    enqueue(&*harness, &[event("a", "late")]).await;
    let worker = worker(&*harness).await;
    let inspect = harness.inspect();
    until("its key goes where it went", || async {
        nothing_more(&worker).await;
        all_dead(&*inspect).await.len() == 3
    })
    .await;
}

/// Suspects that wait for a retry, or behind one, were not what lost the worker.
pub(crate) async fn a_lane_is_calm_when_what_is_left_waits<H: StoreHarness>(harness: Arc<H>) {
    let mates = lane_mates(&*harness, 3).await;
    enqueue(&*harness, &numbered(&mates[0], 4)).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let park = |reason, due| Change::Park { reason, due, attempts: Attempts::default(), failure: None };
    let mut changes = vec![(&rows[0], park(Reason::Retry, Due::In(Duration::ZERO)))];
    changes.extend(rows[1..].iter().map(|row| (row, park(Reason::Behind, Due::Never))));
    owner.settle(&changes).await;
    owner.leave().await;
    lose_owners(&*harness, 2).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 1).await;
    settle(&worker, &claimed, &Outcome::retry(HOUR, "no")).await;
    nothing_more(&worker).await;
    enqueue(&*harness, &[event(&mates[1], "x"), event(&mates[2], "x")]).await;
    claim(&worker, 2).await;
    assert_eq!(worker.stats().named, 1, "what waits behind a failed event keeps no lane from full speed");
}
