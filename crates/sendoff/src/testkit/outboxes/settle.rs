//! What a settlement does, and that it does nothing else.

use std::collections::HashSet;
use std::sync::Arc;

use super::{
    HOUR, LONG, Owner, claim, deliver, enqueue, event, events, failure, lane_mates, loose, nothing_more,
    numbered, settle, start, texts, until, worker,
};
use crate::event::{Attempts, NewEvent};
use crate::outbox::{
    Cause, Change, Due, EventState, Failure, OnExhausted, Outcome, Reason, Settled, Summary,
};
use crate::testkit::{HostTransaction as _, StoreHarness};

pub(crate) async fn published_events_are_gone<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &numbered("a", 3)).await;
    let worker = worker(&*harness).await;
    deliver(&worker, 3).await;
    nothing_more(&worker).await;
    assert!(Owner::watching(harness.store()).hot().await.is_empty());
    for id in ids {
        assert_eq!(harness.inspect().get(id).await.unwrap(), None, "it is not kept");
    }
}

pub(crate) async fn published_events_are_kept_as_history_where_wanted<H: StoreHarness>(harness: Arc<H>) {
    let events = [numbered("a", 2), vec![loose("b").header("h", "v")]].concat();
    let ids = enqueue(&*harness, &events).await;
    let worker = start(harness.store_with_history(), |_| ()).await;
    deliver(&worker, 3).await;
    nothing_more(&worker).await;
    assert!(Owner::watching(harness.store()).hot().await.is_empty());
    for (id, event) in ids.iter().zip(&events) {
        let kept = harness.inspect().get(*id).await.unwrap().expect("it is kept");
        assert_eq!((kept.state, kept.event.topic.as_str()), (EventState::Published, event.topic.as_str()));
        assert_eq!((&kept.event.key, &kept.event.headers), (&event.key, &event.headers));
        assert!(kept.since.is_some(), "and when it was published");
    }
}

pub(crate) async fn each_outcome_is_written_and_counted<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &["a", "b", "c", "d"].map(|key| event(key, key))).await;
    let worker = worker(&*harness).await;
    let mut claimed = claim(&worker, 4).await;
    claimed.sort_by_key(|claimed| claimed.event.position);
    let outcomes =
        [Outcome::Published, Outcome::retry(HOUR, "later"), Outcome::rejected("never"), Outcome::Release];
    let outcomes: Vec<_> = claimed.iter().map(|claimed| claimed.receipt()).zip(outcomes).collect();
    let summary = worker.settle(&outcomes).await.unwrap();
    assert_eq!(summary, Summary { applied: 4, stale: 0, missing: 0 });
    assert_eq!(worker.in_flight(), 0);
    let inspect = harness.inspect();
    assert_eq!(inspect.get(ids[0]).await.unwrap(), None);
    let parked = inspect.get(ids[1]).await.unwrap().unwrap();
    assert_eq!((parked.state, parked.reason), (EventState::Failed, Some(Reason::Retry)));
    assert_eq!(parked.event.attempts, Attempts { failures: 1, crashes: 0 });
    assert_eq!(parked.failure, Some(Failure::new(Cause::Transient, "later")));
    let dead = inspect.get(ids[2]).await.unwrap().unwrap();
    assert_eq!((dead.state, dead.event.attempts.failures), (EventState::Dead, 1));
    assert_eq!(dead.failure, Some(Failure::new(Cause::Rejected, "never")));
    let back = inspect.get(ids[3]).await.unwrap().unwrap();
    assert_eq!((back.state, back.event.attempts), (EventState::Processing, Attempts::default()));
}

pub(crate) async fn what_was_given_back_comes_again_at_once_and_spent_no_attempt<H: StoreHarness>(
    harness: Arc<H>,
) {
    enqueue(&*harness, &[event("a", "a1"), event("a", "a2"), loose("b")]).await;
    let worker = worker(&*harness).await;
    for _ in 0..3 {
        let claimed = claim(&worker, 3).await;
        assert!(claimed.iter().all(|claimed| claimed.event.attempts == Attempts::default()));
        settle(&worker, &claimed, &Outcome::Release).await;
    }
    let delivered = deliver(&worker, 3).await;
    assert_eq!(super::by_key(&delivered)["a"], ["a1", "a2"]);
}

pub(crate) async fn settling_again_changes_nothing<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &[event("a", "a1"), event("b", "b1"), event("b", "b2")]).await;
    let worker = start(harness.store(), |config| config.run = 1).await;
    let claimed = claim(&worker, 2).await;
    settle(&worker, &claimed, &Outcome::Published).await;
    for outcome in [Outcome::Published, Outcome::retry(HOUR, "no"), Outcome::rejected("no"), Outcome::Release]
    {
        let summary = settle(&worker, &claimed, &outcome).await;
        assert_eq!((summary.applied, summary.stale + summary.missing), (0, 2), "{outcome:?}");
    }
    assert_eq!(harness.inspect().get(ids[0]).await.unwrap(), None, "it did not come back");
    assert_eq!(texts(&deliver(&worker, 1).await), ["b2"]);
}

pub(crate) async fn rows_that_are_gone_are_named_as_missing<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 3)).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    assert_eq!(owner.publish(&rows[..1]).await, Settled::default());
    let settled = owner.publish(&rows[..2]).await;
    let missing = HashSet::from([rows[0].event.position]);
    assert_eq!(settled, Settled { stale: HashSet::new(), missing }, "the one that is gone, and no other");
    let bury = Change::Bury { attempts: Attempts::default(), failure: failure(), diverts: true };
    let park = Change::Park {
        reason: Reason::Blocked,
        due: Due::Never,
        attempts: Attempts::default(),
        failure: Some(failure()),
    };
    for change in [bury, park] {
        let settled = owner.settle(&[(&rows[0], change)]).await;
        assert_eq!(settled.missing, HashSet::from([rows[0].event.position]));
    }
    assert!(harness.inspect().parked_keys(crate::DEFAULT_TARGET, 10).await.unwrap().is_empty());
    let left = owner.hot().await;
    assert_eq!(texts(events(&left)), ["a3"], "the rest is untouched");
    assert_eq!(left[0].hold, Default::default(), "and free: nothing of its key was parked");
}

/// Never by range: a late commit may stand between any two.
pub(crate) async fn an_event_between_two_published_ones_survives_them<H: StoreHarness>(harness: Arc<H>) {
    if !harness.writes_side_by_side() {
        return;
    }
    let mates = lane_mates(&*harness, 2).await;
    let worker = worker(&*harness).await;
    enqueue(&*harness, &numbered(&mates[0], 1)).await;
    let mut between = harness.begin().await;
    between.enqueue(&[event(&mates[1], "between")]).await.unwrap();
    enqueue(&*harness, &[event(&mates[0], "after")]).await;
    let claimed = claim(&worker, 2).await;
    between.commit().await.unwrap();
    settle(&worker, &claimed, &Outcome::Published).await;
    let delivered = deliver(&worker, 1).await;
    assert_eq!(texts(&delivered), ["between"]);
    let positions: Vec<i64> = claimed.iter().map(|claimed| claimed.event.position).collect();
    assert!(positions[0] < delivered[0].position && delivered[0].position < positions[1]);
}

/// Many kinds of change to many lanes, together.
pub(crate) async fn one_settlement_takes_every_kind_of_change<H: StoreHarness>(harness: Arc<H>) {
    let all: Vec<NewEvent> =
        (0..90).map(|number| event(&format!("k{number}"), &format!("{number:02}"))).collect();
    let ids = enqueue(&*harness, &all).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let attempts = Attempts { failures: 4, crashes: 2 };
    let park = |reason, due| Change::Park { reason, due, attempts, failure: Some(failure()) };
    let kinds = [
        Change::Publish,
        park(Reason::Retry, Due::In(HOUR)),
        park(Reason::Blocked, Due::Never),
        Change::Bury { attempts, failure: failure(), diverts: false },
        Change::Bury { attempts, failure: failure(), diverts: true },
        Change::Park { reason: Reason::Retry, due: Due::In(HOUR), attempts, failure: None },
    ];
    let changes: Vec<_> =
        rows.iter().enumerate().map(|(index, row)| (row, kinds[index % kinds.len()].clone())).collect();
    assert_eq!(owner.settle(&changes).await, Settled::default());
    assert!(owner.hot().await.is_empty());
    for (index, id) in ids.iter().enumerate() {
        let found = harness.inspect().get(*id).await.unwrap();
        let state = found.as_ref().map(|found| (found.state, found.reason));
        let expected = match index % kinds.len() {
            0 => None,
            1 | 5 => Some((EventState::Failed, Some(Reason::Retry))),
            2 => Some((EventState::Failed, Some(Reason::Blocked))),
            _ => Some((EventState::Dead, None)),
        };
        assert_eq!(state, expected, "event {index}");
        if let Some(found) = found {
            assert_eq!((found.event.attempts, super::text(&found.event)), (attempts, format!("{index:02}")));
            assert_eq!(found.failure.is_some(), index % kinds.len() != 5);
        }
    }
}

pub(crate) async fn a_long_error_is_cut_and_kept<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &[event("a", "a1")]).await;
    let worker = start(harness.store(), |config| config.on_exhausted = OnExhausted::Block).await;
    let claimed = claim(&worker, 1).await;
    let error = "é\0𝄞".repeat(3_000);
    settle(&worker, &claimed, &Outcome::rejected(&error)).await;
    let inspect = harness.inspect();
    until("it is parked", || async { inspect.get(ids[0]).await.unwrap().unwrap().reason.is_some() }).await;
    let kept = inspect.get(ids[0]).await.unwrap().unwrap().failure.unwrap().error;
    assert_eq!(kept.chars().count(), crate::outbox::ERROR_CHARS_MAX);
    assert!(kept.starts_with("é𝄞é𝄞"));
}
