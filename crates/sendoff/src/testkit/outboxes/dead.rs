//! Events that are given up, and what becomes of their keys.

use std::sync::Arc;

use super::{
    Owner, by_key, claim, deliver, enqueue, event, fail_first, key_of, lane_mates, loose, names,
    nothing_more, numbered, settle, sorted, start, stop, text, texts, until, worker,
};
use crate::event::Attempts;
use crate::outbox::{
    Cause, EventState, Inspect, ListQuery, Listed, OnExhausted, Outcome, Reason, Redrive, Redriven, Worker,
};
use crate::testkit::StoreHarness;

pub(super) async fn with_policy<H: StoreHarness>(harness: &H, policy: OnExhausted) -> Worker {
    start(harness.store(), |config| config.on_exhausted = policy).await
}

pub(super) async fn all_dead(inspect: &dyn Inspect) -> Vec<Listed> {
    let query = ListQuery {
        target: crate::DEFAULT_TARGET.to_owned(),
        state: EventState::Dead,
        after: 0,
        limit: 1_000,
    };
    inspect.list(&query).await.unwrap()
}

async fn dead_texts(inspect: &dyn Inspect) -> Vec<String> {
    all_dead(inspect).await.iter().map(|dead| text(&dead.event)).collect()
}

async fn redrive_key(inspect: &dyn Inspect, key: &str) -> Redriven {
    let redrive = Redrive { selection: key_of(key), limit: 1_000, dry_run: false, by: "suite".to_owned() };
    inspect.redrive(&redrive).await.unwrap()
}

/// Fails the first event of a key for good; others that came with it are given back.
pub(super) async fn give_up_first<H: StoreHarness>(
    harness: &H,
    policy: OnExhausted,
    key: &str,
    count: usize,
) {
    let worker = with_policy(harness, policy).await;
    let claimed = claim(&worker, count).await;
    let (mut of_key, others): (Vec<_>, Vec<_>) =
        claimed.into_iter().partition(|claimed| claimed.event.key.as_deref() == Some(key));
    of_key.sort_by_key(|claimed| claimed.event.position);
    fail_first(&worker, &of_key, Outcome::rejected("never")).await;
    settle(&worker, &others, &Outcome::Release).await;
    stop(worker).await;
}

pub(crate) async fn skip_buries_the_event_and_its_key_goes_on<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 3)).await;
    give_up_first(&*harness, OnExhausted::Skip, "a", 3).await;
    let worker = worker(&*harness).await;
    assert_eq!(texts(&deliver(&worker, 2).await), names("a", 2..=3));
    let dead = all_dead(&*harness.inspect()).await;
    assert_eq!(dead.len(), 1);
    assert_eq!((text(&dead[0].event).as_str(), dead[0].event.attempts.failures), ("a1", 1));
    let failure = dead[0].failure.as_ref().unwrap();
    assert_eq!((failure.cause, failure.error.as_str()), (Cause::Rejected, "never"));
    nothing_more(&worker).await;
}

pub(crate) async fn block_keeps_the_key_until_an_operator_comes<H: StoreHarness>(harness: Arc<H>) {
    let mates = lane_mates(&*harness, 2).await;
    enqueue(&*harness, &[numbered(&mates[0], 3), numbered(&mates[1], 2)].concat()).await;
    give_up_first(&*harness, OnExhausted::Block, &mates[0], 5).await;
    let worker = with_policy(&*harness, OnExhausted::Block).await;
    enqueue(&*harness, &[event(&mates[0], "late")]).await;
    assert_eq!(texts(&deliver(&worker, 2).await), names(&mates[1], 1..=2), "other keys go on");
    nothing_more(&worker).await;
    let inspect = harness.inspect();
    let parked = inspect.parked_keys(crate::DEFAULT_TARGET, 10).await.unwrap();
    assert_eq!(parked.len(), 1);
    assert_eq!((parked[0].key.as_ref(), parked[0].reason), (Some(&mates[0]), Reason::Blocked));
    assert_eq!((parked[0].behind, parked[0].due_at), (3, None), "it waits for an operator");
    assert!(all_dead(&*inspect).await.is_empty());
    stop(worker).await;
    assert_eq!(redrive_key(&*inspect, &mates[0]).await.parked, 1);
    let worker = with_policy(&*harness, OnExhausted::Block).await;
    let delivered = deliver(&worker, 4).await;
    let expected = [names(&mates[0], 1..=3), vec!["late".to_owned()]].concat();
    assert_eq!(texts(&delivered), expected);
    assert_eq!(delivered[0].attempts, Attempts::default(), "its attempts begin anew");
}

pub(crate) async fn divert_sends_the_rest_of_the_key_after_it<H: StoreHarness>(harness: Arc<H>) {
    let mates = lane_mates(&*harness, 2).await;
    enqueue(&*harness, &[numbered(&mates[0], 3), numbered(&mates[1], 2)].concat()).await;
    give_up_first(&*harness, OnExhausted::Divert, &mates[0], 5).await;
    let worker = with_policy(&*harness, OnExhausted::Divert).await;
    assert_eq!(texts(&deliver(&worker, 2).await), names(&mates[1], 1..=2), "other keys are untouched");
    enqueue(&*harness, &[event(&mates[0], "late")]).await;
    nothing_more(&worker).await;
    let inspect = harness.inspect();
    let expected = [names(&mates[0], 1..=3), vec!["late".to_owned()]].concat();
    assert_eq!(dead_texts(&*inspect).await, expected, "the rest of the key, and what came later");
    let dead = all_dead(&*inspect).await;
    assert_eq!(dead[0].failure.as_ref().unwrap().cause, Cause::Rejected);
    assert!(dead[1..].iter().all(|dead| dead.failure.as_ref().unwrap().cause == Cause::Diverted));
    assert!(dead[1..].iter().all(|dead| dead.event.attempts == Attempts::default()), "they were not tried");
    let owner = Owner::watching(harness.store());
    assert!(owner.hot().await.is_empty());
    stop(worker).await;
    assert_eq!(redrive_key(&*inspect, &mates[0]).await, Redriven { dead: 4, parked: 0 });
    let worker = with_policy(&*harness, OnExhausted::Divert).await;
    enqueue(&*harness, &[event(&mates[0], "after")]).await;
    let expected = [expected, vec!["after".to_owned()]].concat();
    assert_eq!(texts(&deliver(&worker, 5).await), expected, "all back in sequence, and what came later last");
    assert!(
        inspect.parked_keys(crate::DEFAULT_TARGET, 10).await.unwrap().is_empty(),
        "the key is free again"
    );
}

/// Its earlier events were parked when it was given up: they go too, however many.
pub(crate) async fn divert_takes_what_is_parked_behind<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 250)).await;
    let first = with_policy(&*harness, OnExhausted::Divert).await;
    let claimed = claim(&first, 100).await;
    fail_first(&first, &claimed, Outcome::retry(std::time::Duration::ZERO, "no")).await;
    nothing_more_hot(&first, &*harness).await;
    let patience = super::Patience::new("a parked event comes back");
    let again = loop {
        let again = first.claim(10_000).await.unwrap();
        if !again.is_empty() {
            break again;
        }
        patience.wait().await;
    };
    fail_first(&first, &again, Outcome::rejected("never")).await;
    let inspect = harness.inspect();
    let is_diverted = || async {
        nothing_more(&first).await;
        all_dead(&*inspect).await.len() == 250
    };
    until("all of the key is dead", is_diverted).await;
    assert_eq!(dead_texts(&*inspect).await, names("a", 1..=250));
    enqueue(&*harness, &[event("b", "b1"), event("a", "late")]).await;
    assert_eq!(texts(&deliver(&first, 1).await), ["b1"]);
    until("what comes later follows", || async {
        nothing_more(&first).await;
        all_dead(&*inspect).await.len() == 251
    })
    .await;
}

/// The events given back behind a failure are out of the event table.
async fn nothing_more_hot<H: StoreHarness>(worker: &Worker, harness: &H) {
    let owner = Owner::watching(harness.store());
    let moved = || async {
        let claimed = worker.claim(10_000).await.unwrap();
        settle(worker, &claimed, &Outcome::Release).await;
        owner.hot().await.iter().all(|row| row.hold != crate::outbox::Hold::Held)
    };
    until("what waits behind a failure is moved aside", moved).await;
}

/// An event without a key has no rest of its key.
pub(crate) async fn an_event_without_a_key_is_given_up_alone<H: StoreHarness>(harness: Arc<H>) {
    for policy in [OnExhausted::Skip, OnExhausted::Divert, OnExhausted::Block] {
        let before = all_dead(&*harness.inspect()).await.len();
        enqueue(&*harness, &[loose("bad"), loose("good"), event("k", "good")]).await;
        let worker = with_policy(&*harness, policy).await;
        let claimed = claim(&worker, 3).await;
        let (bad, good): (Vec<_>, Vec<_>) =
            claimed.into_iter().partition(|claimed| text(&claimed.event) == "bad");
        settle(&worker, &bad, &Outcome::rejected("never")).await;
        settle(&worker, &good, &Outcome::Release).await;
        assert_eq!(sorted(&deliver(&worker, 2).await), ["good", "good"], "{policy:?}");
        let dead = all_dead(&*harness.inspect()).await.len() - before;
        assert_eq!(dead, usize::from(policy != OnExhausted::Block), "{policy:?}");
        let parked = harness.inspect().parked_keys(crate::DEFAULT_TARGET, 10).await.unwrap();
        assert_eq!(parked.len(), usize::from(policy == OnExhausted::Block), "{policy:?}");
        stop(worker).await;
    }
}

pub(crate) async fn attempts_and_cause_are_kept_through_retries<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 1)).await;
    let worker = worker(&*harness).await;
    for number in 1..=3 {
        let claimed = claim(&worker, 1).await;
        assert_eq!(claimed[0].event.attempts.failures, number - 1);
        let pause = std::time::Duration::from_millis(10);
        settle(&worker, &claimed, &Outcome::retry(pause, format!("no {number}"))).await;
    }
    let claimed = claim(&worker, 1).await;
    settle(&worker, &claimed, &Outcome::rejected("enough")).await;
    let dead = all_dead(&*harness.inspect()).await;
    assert_eq!(dead[0].event.attempts, Attempts { failures: 4, crashes: 0 });
    assert_eq!(dead[0].failure.as_ref().unwrap().error, "enough");
    assert!(dead[0].since.is_some());
    assert_eq!(
        dead[0].event,
        crate::event::Event { attempts: dead[0].event.attempts, ..claimed[0].event.clone() }
    );
}

/// Two keys of a lane given up in one settlement; the third goes on.
pub(crate) async fn keys_given_up_together_stay_apart<H: StoreHarness>(harness: Arc<H>) {
    let mates = lane_mates(&*harness, 3).await;
    let all: Vec<_> = mates.iter().flat_map(|key| numbered(key, 2)).collect();
    enqueue(&*harness, &all).await;
    let worker = with_policy(&*harness, OnExhausted::Divert).await;
    let claimed = claim(&worker, 6).await;
    let outcomes: Vec<_> = claimed
        .iter()
        .map(|claimed| {
            let is_head = mates[..2].iter().any(|key| {
                claimed.event.key.as_ref() == Some(key) && names(key, [1]).contains(&text(&claimed.event))
            });
            (claimed.receipt(), if is_head { Outcome::rejected("never") } else { Outcome::Release })
        })
        .collect();
    worker.settle(&outcomes).await.unwrap();
    let delivered = deliver(&worker, 2).await;
    assert_eq!(by_key(&delivered)[&mates[2]], names(&mates[2], 1..=2));
    nothing_more(&worker).await;
    let mut expected = [names(&mates[0], 1..=2), names(&mates[1], 1..=2)].concat();
    expected.sort();
    let mut dead = dead_texts(&*harness.inspect()).await;
    dead.sort();
    assert_eq!(dead, expected);
}
