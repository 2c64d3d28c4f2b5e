//! Events for later.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::{
    HOUR, LONG, Owner, claim, deliver, enqueue, event, events, fail_first, loose, names, nothing_more,
    numbered, settle, texts, worker,
};
use crate::claim::Timestamp;
use crate::outbox::{Change, Due, EventState, Outcome, Reason, Redrive};
use crate::testkit::StoreHarness;

/// Long enough for what has to come before on a slow machine, short enough to wait for.
const LATER: Duration = Duration::from_secs(3);

/// So far ahead of now; the cases allow for a clock that is not quite this machine's.
fn ahead(time: Duration) -> Timestamp {
    Timestamp::from(SystemTime::now() + time)
}

pub(crate) async fn a_delayed_event_comes_when_it_is_time_and_its_key_does_not_wait<H: StoreHarness>(
    harness: Arc<H>,
) {
    let at = ahead(LATER);
    enqueue(&*harness, &[event("a", "later").deliver_at(at), loose("later").deliver_at(at)]).await;
    enqueue(&*harness, &numbered("a", 2)).await;
    let worker = worker(&*harness).await;
    assert_eq!(texts(&deliver(&worker, 2).await), names("a", 1..=2), "its key does not wait for it");
    let owner = Owner::watching(harness.store());
    assert!(owner.hot().await.is_empty(), "what is for later is parked");
    let delivered = deliver(&worker, 2).await;
    assert!(Timestamp::from(SystemTime::now()) >= at, "it came before its time");
    assert_eq!(texts(&delivered), ["later", "later"]);
    assert_eq!(delivered[0].attempts.failures, 0);
}

pub(crate) async fn an_event_for_a_time_that_has_passed_is_due<H: StoreHarness>(harness: Arc<H>) {
    let past = Timestamp::from(SystemTime::now() - HOUR);
    enqueue(&*harness, &[event("a", "a1").deliver_at(past), event("a", "a2")]).await;
    let owner = Owner::join(harness.store(), LONG).await;
    assert!(owner.hot().await.iter().all(|row| row.later.is_none()), "it is not for later");
    owner.leave().await;
    let worker = worker(&*harness).await;
    assert_eq!(texts(&deliver(&worker, 2).await), ["a1", "a2"]);
}

pub(crate) async fn a_delayed_event_is_not_handed_out_before_its_time<H: StoreHarness>(harness: Arc<H>) {
    let at = ahead(HOUR);
    let ids = enqueue(&*harness, &[event("a", "later").deliver_at(at)]).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    assert_eq!(rows[0].later.map(Timestamp::as_micros), Some(at.as_micros()), "to the microsecond");
    let park = Change::Park {
        reason: Reason::Delayed,
        due: Due::At(at),
        attempts: Default::default(),
        failure: None,
    };
    owner.settle(&[(&rows[0], park)]).await;
    let parked = owner.store.fetch_parked(&owner.want(10)).await.unwrap();
    assert!(parked.events.is_empty());
    assert!(parked.next_due.is_some_and(|next| next > HOUR / 2 && next <= HOUR + Duration::from_secs(60)));
    let listed = harness.inspect().get(ids[0]).await.unwrap().unwrap();
    assert_eq!((listed.state, listed.due_at), (EventState::Unprocessed, Some(at)));
    enqueue(&*harness, &[event("a", "now")]).await;
    assert_eq!(owner.hot().await[0].hold, Default::default(), "its key is free");
    assert!(harness.inspect().parked_keys(crate::DEFAULT_TARGET, 10).await.unwrap().is_empty());
}

/// Its time has come, and an earlier event of its key waits for a retry.
pub(crate) async fn a_delayed_event_of_a_parked_key_waits_its_turn<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 1)).await;
    let at = ahead(LATER);
    enqueue(&*harness, &[event("a", "later").deliver_at(at)]).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 1).await;
    settle(&worker, &claimed, &Outcome::retry(HOUR, "no")).await;
    let inspect = harness.inspect();
    let is_behind = || async {
        nothing_more(&worker).await;
        let parked = inspect.parked_keys(crate::DEFAULT_TARGET, 10).await.unwrap();
        parked.len() == 1 && parked[0].behind == 1
    };
    super::until("it takes its place behind the one that failed", is_behind).await;
    let redrive =
        Redrive { selection: super::key_of("a"), limit: 10, dry_run: false, by: "suite".to_owned() };
    inspect.redrive(&redrive).await.unwrap();
    assert_eq!(texts(&deliver(&worker, 2).await), ["a1", "later"]);
}

/// Both are due when they are looked at, the delayed one for longer.
pub(crate) async fn a_delayed_event_closes_its_key_to_nobody<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 1)).await;
    let at = ahead(LATER);
    enqueue(&*harness, &[event("a", "later").deliver_at(at)]).await;
    let first = worker(&*harness).await;
    let claimed = claim(&first, 1).await;
    settle(&first, &claimed, &Outcome::retry(LATER + Duration::from_millis(100), "no")).await;
    super::stop(first).await;
    harness.pass(LATER + Duration::from_millis(300)).await;
    let second = worker(&*harness).await;
    assert_eq!(texts(&deliver(&second, 2).await), ["a1", "later"]);
}

/// Its time has come, and a later event of its key failed in the meantime: neither is forgotten.
pub(crate) async fn a_delayed_event_before_a_parked_one_is_delivered<H: StoreHarness>(harness: Arc<H>) {
    let at = ahead(LATER);
    enqueue(&*harness, &[event("a", "later").deliver_at(at)]).await;
    enqueue(&*harness, &numbered("a", 2)).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 2).await;
    fail_first(&worker, &claimed, Outcome::retry(LATER + Duration::from_millis(500), "no")).await;
    let delivered = texts(&deliver(&worker, 3).await);
    assert!(delivered.contains(&"later".to_owned()));
    let others: Vec<&String> = delivered.iter().filter(|text| *text != "later").collect();
    assert_eq!(others, ["a1", "a2"]);
}

pub(crate) async fn a_delayed_event_that_fails_holds_its_key<H: StoreHarness>(harness: Arc<H>) {
    let past = ahead(Duration::from_millis(50));
    enqueue(&*harness, &[event("a", "later").deliver_at(past)]).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 1).await;
    settle(&worker, &claimed, &Outcome::retry(HOUR, "no")).await;
    enqueue(&*harness, &numbered("a", 1)).await;
    nothing_more(&worker).await;
    let owner = Owner::watching(harness.store());
    assert_eq!(events(&owner.hot().await).count(), 0);
    let parked = harness.inspect().parked_keys(crate::DEFAULT_TARGET, 10).await.unwrap();
    assert_eq!((parked[0].reason, parked[0].behind), (Reason::Retry, 1), "from now on it is like any other");
}
