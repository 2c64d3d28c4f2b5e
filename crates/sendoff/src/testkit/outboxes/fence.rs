//! A stale token settles nothing, whatever the outcome, and what the successor did stands.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::wrapped::Wrapped;
use super::{
    HOUR, LONG, Owner, claim, deliver, enqueue, event, events, failure, nothing_more, numbered, settle,
    start, texts,
};
use crate::event::Attempts;
use crate::outbox::{
    Change, Due, EventState, Fetched, Member, OnExhausted, Outcome, Reason, Settled, Summary,
};
use crate::testkit::StoreHarness;

fn park(reason: Reason, due: Due) -> Change {
    let attempts = Attempts { failures: 9, crashes: 9 };
    Change::Park { reason, due, attempts, failure: Some(failure()) }
}

fn every_change() -> Vec<Change> {
    let bury = |diverts| Change::Bury { attempts: Attempts::default(), failure: failure(), diverts };
    vec![
        Change::Publish,
        park(Reason::Retry, Due::In(HOUR)),
        park(Reason::Blocked, Due::Never),
        park(Reason::Behind, Due::Never),
        bury(false),
        bury(true),
    ]
}

pub(crate) async fn a_stale_token_settles_nothing<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 3)).await;
    let stale = Owner::of_all(&*harness, LONG).await;
    let rows = stale.hot().await;
    stale.store.give(&stale.member, &stale.tokens()).await.unwrap();
    let owner = Owner::of_all(&*harness, LONG).await;
    let lanes = HashSet::from([rows[0].event.lane]);
    for change in every_change() {
        let changes: Vec<(&Fetched, Change)> = rows.iter().map(|row| (row, change.clone())).collect();
        let settled = stale.settle(&changes).await;
        assert_eq!(settled.stale, lanes, "{change:?} under a stale token");
        assert_eq!(owner.hot().await, rows, "{change:?} under a stale token changed something");
        assert!(owner.due().await.is_empty());
    }
    assert_eq!(owner.publish(&rows).await, Settled::default());
}

/// The same for parked events, whose token is the same.
pub(crate) async fn a_stale_token_settles_no_parked_event<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 2)).await;
    let stale = Owner::of_all(&*harness, LONG).await;
    let rows = stale.hot().await;
    let changes = [
        (&rows[0], park(Reason::Retry, Due::In(Duration::ZERO))),
        (&rows[1], park(Reason::Behind, Due::Never)),
    ];
    assert_eq!(stale.settle(&changes).await, Settled::default());
    let due = stale.due().await;
    assert_eq!(texts(events(&due)), ["a1", "a2"]);
    stale.store.give(&stale.member, &stale.tokens()).await.unwrap();
    let owner = Owner::of_all(&*harness, LONG).await;
    for change in every_change() {
        let changes: Vec<(&Fetched, Change)> = due.iter().map(|row| (row, change.clone())).collect();
        assert_eq!(stale.settle(&changes).await.stale.len(), 1);
        assert_eq!(owner.due().await, due, "{change:?} under a stale token changed something");
    }
}

pub(crate) async fn the_lease_of_a_lost_owner_is_as_stale<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &[event("a", "a1")]).await;
    let stale = Owner::of_all(&*harness, LONG).await;
    let rows = stale.hot().await;
    stale.lapse(&*harness).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    assert_eq!(stale.publish(&rows).await.stale.len(), 1);
    assert_eq!(owner.hot().await, rows);
}

/// What the successor made of an event is not touched by what its last owner says later.
pub(crate) async fn the_successors_result_stands<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &["a", "b", "c", "d"].map(|key| event(key, key))).await;
    let stale = Owner::of_all(&*harness, LONG).await;
    let rows = stale.hot().await;
    stale.store.give(&stale.member, &stale.tokens()).await.unwrap();
    let owner = Owner::of_all(&*harness, LONG).await;
    let attempts = Attempts { failures: 1, crashes: 0 };
    let results = [
        Change::Publish,
        Change::Park { reason: Reason::Retry, due: Due::In(HOUR), attempts, failure: None },
        Change::Bury { attempts, failure: failure(), diverts: false },
    ];
    let changes: Vec<(&Fetched, Change)> = rows.iter().zip(results).collect();
    assert_eq!(owner.settle(&changes).await, Settled::default());
    for change in every_change() {
        let changes: Vec<(&Fetched, Change)> = rows.iter().map(|row| (row, change.clone())).collect();
        stale.settle(&changes).await;
        let mut states = Vec::new();
        for id in &ids {
            let found = harness.inspect().get(*id).await.unwrap();
            states.push(found.map(|found| (found.state, found.event.attempts.failures)));
        }
        let failed = Some((EventState::Failed, 1));
        let (dead, untouched) = (Some((EventState::Dead, 1)), Some((EventState::Processing, 0)));
        assert_eq!(states, [None, failed, dead, untouched], "{change:?} under a stale token");
    }
}

/// A lane that was lost does not keep the others from being settled.
pub(crate) async fn one_stale_lane_holds_up_no_other<H: StoreHarness>(harness: Arc<H>) {
    let all: Vec<_> = (0..40).map(|number| event(&format!("k{number}"), "x")).collect();
    enqueue(&*harness, &all).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let lost = rows[0].event.lane;
    owner.store.give(&owner.member, &[owner.leased(lost).token]).await.unwrap();
    let mut other = Owner::join(harness.store(), LONG).await;
    assert_eq!(other.take(64).await.len(), 1);
    let settled = owner.publish(&rows).await;
    assert_eq!(settled.stale, HashSet::from([lost]));
    assert!(settled.missing.is_empty(), "what is in a stale lane is not looked at");
    let left = owner.hot().await;
    let of_lane = rows.iter().filter(|row| row.event.lane == lost).count();
    assert_eq!(left.len(), of_lane, "the lane that was lost, and no other");
    assert!(left.iter().all(|row| row.event.lane == lost));
}

/// A worker that was declared gone settles: nothing is changed, and it is told.
pub(crate) async fn a_worker_that_lost_its_lanes_is_told_so<H: StoreHarness>(harness: Arc<H>) {
    for policy in [OnExhausted::Skip, OnExhausted::Block, OnExhausted::Divert] {
        for outcome in
            [Outcome::Published, Outcome::retry(HOUR, "no"), Outcome::rejected("no"), Outcome::Release]
        {
            enqueue(&*harness, &[event("a", "a1")]).await;
            let worker = start(harness.store(), |config| config.on_exhausted = policy).await;
            let claimed = claim(&worker, 1).await;
            let member = Member {
                worker: worker.id(),
                name: "worker".to_owned(),
                target: crate::DEFAULT_TARGET.to_owned(),
                lease: LONG,
                scope: Default::default(),
            };
            harness.store().leave(&member).await.unwrap();
            let successor = Owner::of_all(&*harness, LONG).await;
            let summary = settle(&worker, &claimed, &outcome).await;
            if outcome != Outcome::Release {
                assert_eq!(summary, Summary { applied: 0, stale: 1, missing: 0 }, "{policy:?} {outcome:?}");
                assert!(worker.stats().stale == 1 && worker.stats().lost >= 1, "it is counted");
                nothing_more(&worker).await;
            }
            super::stop(worker).await;
            let rows = successor.hot().await;
            assert_eq!(texts(events(&rows)), ["a1"], "{policy:?} {outcome:?} under a stale token");
            assert_eq!(successor.publish(&rows).await, Settled::default());
            successor.leave().await;
        }
    }
}

/// Most of the lease is there to publish in, and it ends before the lease does.
pub(crate) async fn the_deadline_lies_within_the_lease<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 1)).await;
    let began = Instant::now();
    let worker = super::worker(&*harness).await;
    let claimed = claim(&worker, 1).await;
    assert!(claimed[0].deadline > began + LONG / 2, "too short to publish in");
    assert!(claimed[0].deadline < Instant::now() + LONG, "by then the lane may be another's");
}

/// By then the lane may be another's; whether it is, a worker that cannot renew does not know.
pub(crate) async fn nothing_is_handed_out_past_the_deadline<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 2)).await;
    let store = Wrapped::new(harness.store());
    let worker = start(store.clone(), |config| {
        config.run = 1;
        config.lease = Duration::from_secs(2);
    })
    .await;
    let claimed = claim(&worker, 1).await;
    store.faults.lock().unwrap().renew = u32::MAX;
    settle(&worker, &claimed, &Outcome::Published).await;
    // One renewal may have been under way when they began to fail.
    let over = Instant::now() + Duration::from_secs(2);
    tokio::time::sleep_until(over).await;
    nothing_more(&worker).await;
    store.faults.lock().unwrap().renew = 0;
    assert_eq!(texts(&deliver(&worker, 1).await), ["a2"], "it goes on when it can renew again");
}
