//! Events that an operator takes out.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{
    HOUR, LONG, Owner, claim, deliver, enqueue, event, events, fail_first, failure, loose, names, numbered,
    settle, stop, texts, worker,
};
use crate::claim::Timestamp;
use crate::event::{Attempts, EventId};
use crate::outbox::{Cancelled, Change, Due, Outcome, Reason};
use crate::testkit::StoreHarness;

pub(crate) async fn an_event_that_is_not_in_flight_is_taken_out<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &numbered("a", 3)).await;
    let inspect = harness.inspect();
    assert_eq!(inspect.cancel(ids[1], "suite").await.unwrap(), Cancelled::Yes);
    assert_eq!(inspect.cancel(ids[1], "suite").await.unwrap(), Cancelled::NoSuchEvent);
    assert_eq!(inspect.cancel(EventId::generate(), "suite").await.unwrap(), Cancelled::NoSuchEvent);
    assert_eq!(inspect.get(ids[1]).await.unwrap(), None);
    let worker = worker(&*harness).await;
    assert_eq!(texts(&deliver(&worker, 2).await), ["a1", "a3"]);
}

pub(crate) async fn an_event_that_may_be_in_flight_stays<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &numbered("a", 2)).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 2).await;
    let refused = Cancelled::MayBeInFlight { worker: worker.id() };
    assert_eq!(harness.inspect().cancel(ids[0], "suite").await.unwrap(), refused);
    assert_eq!(settle(&worker, &claimed, &Outcome::Published).await.applied, 2);
    assert_eq!(harness.inspect().cancel(ids[0], "suite").await.unwrap(), Cancelled::NoSuchEvent);
}

/// A run of parked events is in flight, all of it.
pub(crate) async fn an_event_behind_one_that_is_due_may_be_in_flight<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &numbered("a", 3)).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 3).await;
    fail_first(&worker, &claimed, Outcome::retry(Duration::from_millis(50), "no")).await;
    let again = claim(&worker, 3).await;
    let refused = Cancelled::MayBeInFlight { worker: worker.id() };
    for id in ids {
        assert_eq!(harness.inspect().cancel(id, "suite").await.unwrap(), refused);
    }
    assert_eq!(settle(&worker, &again, &Outcome::Published).await.applied, 3);
}

/// The head of a key that waits is not in flight, whoever has its lane; what was behind it goes on.
pub(crate) async fn a_parked_head_is_taken_out_and_its_key_goes_on<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &numbered("a", 3)).await;
    let first = worker(&*harness).await;
    let claimed = claim(&first, 3).await;
    fail_first(&first, &claimed, Outcome::retry(HOUR, "no")).await;
    assert_eq!(harness.inspect().cancel(ids[1], "suite").await.unwrap(), Cancelled::Yes, "it waits as well");
    assert_eq!(harness.inspect().cancel(ids[0], "suite").await.unwrap(), Cancelled::Yes);
    stop(first).await;
    let worker = worker(&*harness).await;
    assert_eq!(texts(&deliver(&worker, 1).await), ["a3"]);
}

pub(crate) async fn an_event_for_later_is_taken_out<H: StoreHarness>(harness: Arc<H>) {
    let at = Timestamp::from(SystemTime::now() + HOUR);
    let ids = enqueue(&*harness, &[event("a", "later").deliver_at(at), event("a", "now")]).await;
    let worker = worker(&*harness).await;
    assert_eq!(texts(&deliver(&worker, 1).await), ["now"]);
    assert_eq!(harness.inspect().cancel(ids[0], "suite").await.unwrap(), Cancelled::Yes);
    assert_eq!(harness.inspect().get(ids[0]).await.unwrap(), None);
}

pub(crate) async fn the_lane_of_a_lost_worker_keeps_nothing_from_being_taken_out<H: StoreHarness>(
    harness: Arc<H>,
) {
    let ids = enqueue(&*harness, &[loose("one")]).await;
    Owner::of_all(&*harness, LONG).await.lapse(&*harness).await;
    assert_eq!(harness.inspect().cancel(ids[0], "suite").await.unwrap(), Cancelled::Yes);
}

pub(crate) async fn dead_letters_are_not_cancelled<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &[event("a", "plain"), event("b", "diverts")]).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let bury = |diverts| Change::Bury { attempts: Attempts::default(), failure: failure(), diverts };
    owner.settle(&[(&rows[0], bury(false)), (&rows[1], bury(true))]).await;
    for id in ids {
        assert_eq!(harness.inspect().cancel(id, "suite").await.unwrap(), Cancelled::NoSuchEvent);
        assert!(harness.inspect().get(id).await.unwrap().is_some());
    }
    enqueue(&*harness, &[event("b", "late")]).await;
    assert_eq!(owner.hot().await[0].hold, crate::outbox::Hold::Diverted, "the key is diverted still");
}

/// The head of a key, cancelled between a fetch and the move of what it saw.
pub(crate) async fn what_is_behind_a_cancelled_event_is_due<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &numbered("a", 3)).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let park =
        |reason, due| Change::Park { reason, due, attempts: Attempts::default(), failure: Some(failure()) };
    owner
        .settle(&[
            (&rows[0], park(Reason::Blocked, Due::Never)),
            (&rows[1], park(Reason::Behind, Due::Never)),
        ])
        .await;
    assert!(owner.due().await.is_empty());
    assert_eq!(harness.inspect().cancel(ids[0], "suite").await.unwrap(), Cancelled::Yes);
    assert_eq!(texts(events(&owner.due().await)), names("a", [2]));
    owner.settle(&[(&rows[2], park(Reason::Behind, Due::Never))]).await;
    assert_eq!(texts(events(&owner.due().await)), names("a", 2..=3));
}
