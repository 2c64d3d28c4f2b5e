//! What belongs together, and is settled apart or answered in part.

use std::sync::Arc;
use std::time::Duration;

use super::dead::{all_dead, with_policy};
use super::wrapped::Wrapped;
use super::{
    HOUR, LEASE, LONG, Owner, claim, deliver, enqueue, event, fail_first, loose, names, nothing_more,
    numbered, settle, start, texts, until, worker,
};
use crate::claim::Timestamp;
use crate::event::NewEvent;
use crate::outbox::{Change, Due, OnExhausted, Outcome, Reason, Worker};
use crate::testkit::StoreHarness;

/// A pause that a case waits for.
const SOON: Duration = Duration::from_millis(150);

/// The first of a run fails; before the rest is given back, a later event of the key comes up.
pub(crate) async fn nothing_is_moved_past_an_event_that_is_given_back_later<H: StoreHarness>(
    harness: Arc<H>,
) {
    enqueue(&*harness, &numbered("a", 2)).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 2).await;
    settle(&worker, &claimed[..1], &Outcome::retry(SOON, "not now")).await;
    enqueue(&*harness, &[event("a", "a3")]).await;
    nothing_more(&worker).await;
    // The first is due by then: it must not take the third along.
    tokio::time::sleep(SOON * 2).await;
    settle(&worker, &claimed[1..], &Outcome::Release).await;
    assert_eq!(texts(&deliver(&worker, 3).await), names("a", 1..=3));
}

/// A delayed event that is due goes before lower ones of its key that came up with it.
pub(crate) async fn what_came_with_a_delayed_event_that_fails_keeps_its_order<H: StoreHarness>(
    harness: Arc<H>,
) {
    enqueue(&*harness, &[event("a", "a1"), event("a", "later"), event("a", "a2")]).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let was_due = Due::At(Timestamp::from_micros(1_000_000));
    let attempts = Default::default();
    let delay = Change::Park { reason: Reason::Delayed, due: was_due, attempts, failure: None };
    owner.settle(&[(&rows[1], delay)]).await;
    owner.leave().await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 3).await;
    assert_eq!(texts(claimed.iter().map(|one| &one.event)), ["later", "a1", "a2"]);
    fail_first(&worker, &claimed, Outcome::retry(SOON, "not now")).await;
    tokio::time::sleep(SOON * 2).await;
    let mut came = texts(&deliver(&worker, 3).await);
    came.retain(|text| text != "later");
    assert_eq!(came, ["a1", "a2"]);
}

/// All events of these keys, each key's first one waiting for its retry and the others behind it, come up again.
async fn parked_run<H: StoreHarness>(harness: &H, worker: &Worker, events: &[NewEvent]) {
    enqueue(harness, events).await;
    let claimed = claim(worker, events.len()).await;
    let is_first = |at: usize| claimed[..at].iter().all(|one| one.event.key != claimed[at].event.key);
    let outcomes: Vec<_> = (0..claimed.len())
        .map(|at| {
            let retry = Outcome::retry(Duration::from_millis(1), "not now");
            (claimed[at].receipt(), if is_first(at) { retry } else { Outcome::Release })
        })
        .collect();
    worker.settle(&outcomes).await.unwrap();
}

async fn all_follow<H: StoreHarness>(harness: &H, worker: &Worker, limit: usize, count: usize) {
    let inspect = harness.inspect();
    until("what is behind a dead event of its key follows it", || async {
        assert_eq!(worker.claim(limit).await.unwrap(), [], "its key is diverted");
        all_dead(&*inspect).await.len() == count
    })
    .await;
}

pub(crate) async fn a_diverted_key_takes_along_what_is_given_back_later<H: StoreHarness>(harness: Arc<H>) {
    let worker = with_policy(&*harness, OnExhausted::Divert).await;
    parked_run(&*harness, &worker, &numbered("a", 3)).await;
    let claimed = claim(&worker, 3).await;
    settle(&worker, &claimed[..1], &Outcome::rejected("never")).await;
    nothing_more(&worker).await;
    settle(&worker, &claimed[1..], &Outcome::Release).await;
    all_follow(&*harness, &worker, 100, 3).await;
}

pub(crate) async fn a_diverted_key_is_followed_one_event_at_a_time<H: StoreHarness>(harness: Arc<H>) {
    let worker = with_policy(&*harness, OnExhausted::Divert).await;
    parked_run(&*harness, &worker, &numbered("a", 3)).await;
    let claimed = claim(&worker, 3).await;
    fail_first(&worker, &claimed, Outcome::rejected("never")).await;
    all_follow(&*harness, &worker, 1, 3).await;
}

/// More than a store reads at a time.
pub(crate) async fn many_diverted_keys_are_all_followed<H: StoreHarness>(harness: Arc<H>) {
    let worker = with_policy(&*harness, OnExhausted::Divert).await;
    let events: Vec<NewEvent> = (0..70).flat_map(|key| numbered(&format!("key-{key}-"), 2)).collect();
    parked_run(&*harness, &worker, &events).await;
    let claimed = until_claimed(&worker, 70).await;
    let outcomes: Vec<_> = claimed
        .iter()
        .map(|one| {
            let is_first = texts([&one.event])[0].ends_with("-1");
            let outcome = if is_first { Outcome::rejected("never") } else { Outcome::Release };
            (one.receipt(), outcome)
        })
        .collect();
    worker.settle(&outcomes).await.unwrap();
    all_follow(&*harness, &worker, 1_000, 140).await;
}

/// Claims until the firsts of so many keys are in hand.
async fn until_claimed(worker: &Worker, keys: usize) -> Vec<crate::outbox::Claimed> {
    let patience = super::Patience::new("events that are due are handed out");
    let mut claimed: Vec<crate::outbox::Claimed> = Vec::new();
    let is_first = |one: &&crate::outbox::Claimed| texts([&one.event])[0].ends_with("-1");
    while claimed.iter().filter(is_first).count() < keys {
        claimed.extend(worker.claim(10_000).await.unwrap());
        patience.wait().await;
    }
    claimed
}

pub(crate) async fn a_crash_counts_once_though_the_answer_was_lost<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &[event("a", "a1")]).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let row = owner.hot().await.remove(0);
    let token = owner.leased(row.event.lane).token;
    assert!(owner.store.name(&owner.member, token, row.event.position).await.unwrap());
    let store = Wrapped::new(harness.store());
    store.faults.lock().unwrap().settle_after = 1;
    let worker = start(store.clone(), |config| {
        config.lease = LEASE;
        config.crash_pause = HOUR;
    })
    .await;
    owner.lapse(&*harness).await;
    let inspect = harness.inspect();
    let crashes = async || inspect.get(ids[0]).await.unwrap().map_or(0, |found| found.event.attempts.crashes);
    until("the event that was in hand is charged", async || crashes().await > 0).await;
    until("the lane is worked again", async || worker.lanes().len() == 64).await;
    tokio::time::sleep(LEASE / 2).await;
    assert_eq!(crashes().await, 1);
}

/// A lane that was given back stays so, though the answer was lost and its share has grown since.
pub(crate) async fn a_lane_given_back_is_not_handed_out_from<H: StoreHarness>(harness: Arc<H>) {
    let store = Wrapped::new(harness.store());
    let worker = start(store.clone(), |config| config.lease = LEASE).await;
    // The next renewal would tell as well, and may come first: it takes more than one try.
    for _ in 0..3 {
        store.faults.lock().unwrap().give_after = 1;
        let other = Owner::join(harness.store(), LONG).await;
        until("a surplus is given back", async || store.faults.lock().unwrap().give_after == 0).await;
        other.leave().await;
        let all: Vec<NewEvent> = (0..128).map(|number| loose(&number.to_string())).collect();
        enqueue(&*harness, &all).await;
        deliver(&worker, 128).await;
        until("all lanes are taken again", async || worker.lanes().len() == 64).await;
    }
    assert_eq!(worker.stats().stale, 0);
}
