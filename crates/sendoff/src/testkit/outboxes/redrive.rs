//! Dead and parked events are brought back, in order and within bounds.

use std::sync::Arc;
use std::time::Duration;

use super::dead::{all_dead, give_up_first};
use super::{
    HOUR, LONG, Owner, by_key, claim, deliver, enqueue, event, events, failure, key_of, loose, names,
    numbered, settle, stop, texts, worker,
};
use crate::event::{Attempts, EventId};
use crate::outbox::{Change, Due, Explanation, OnExhausted, Outcome, Reason, Redrive, Redriven, Selection};
use crate::testkit::StoreHarness;

async fn redrive<H: StoreHarness>(harness: &H, selection: Selection, limit: u32) -> Redriven {
    let ask = |dry_run| Redrive { selection: selection.clone(), limit, dry_run, by: "suite".to_owned() };
    let inspect = harness.inspect();
    let before = (all_dead(&*inspect).await, inspect.counts().await.unwrap().targets);
    let counted = inspect.redrive(&ask(true)).await.unwrap();
    let after = (all_dead(&*inspect).await, inspect.counts().await.unwrap().targets);
    assert_eq!(before.0, after.0, "a dry run changed something");
    assert_eq!(before.1.len(), after.1.len());
    let done = inspect.redrive(&ask(false)).await.unwrap();
    assert_eq!(done, counted, "a dry run counts the same");
    done
}

/// Writes events that are all given up at once, each alone.
pub(super) async fn bury<H: StoreHarness>(harness: &H, new: &[crate::NewEvent]) -> Vec<EventId> {
    let ids = enqueue(harness, new).await;
    let owner = Owner::of_all(harness, LONG).await;
    let rows: Vec<_> =
        owner.hot().await.into_iter().filter(|row| ids.contains(&row.event.event_id)).collect();
    let attempts = Attempts { failures: 7, crashes: 2 };
    let changes: Vec<_> =
        rows.iter().map(|row| (row, Change::Bury { attempts, failure: failure(), diverts: false })).collect();
    assert_eq!(owner.settle(&changes).await, Default::default());
    owner.leave().await;
    ids
}

pub(crate) async fn one_event_comes_back_before_its_successors<H: StoreHarness>(harness: Arc<H>) {
    let ids = bury(&*harness, &numbered("a", 3)).await;
    enqueue(&*harness, &[event("a", "hot")]).await;
    assert_eq!(redrive(&*harness, Selection::Event(ids[1]), 10).await, Redriven { dead: 1, parked: 0 });
    let worker = worker(&*harness).await;
    let delivered = deliver(&worker, 2).await;
    assert_eq!(texts(&delivered), ["a2", "hot"], "before what waits of its key");
    assert_eq!(delivered[0].attempts, Attempts::default(), "its attempts begin anew");
    assert_eq!(all_dead(&*harness.inspect()).await.len(), 2, "the others stay");
    assert_eq!(
        redrive(&*harness, Selection::Event(ids[1]), 10).await,
        Redriven::default(),
        "it is delivered"
    );
}

pub(crate) async fn a_key_comes_back_in_sequence<H: StoreHarness>(harness: Arc<H>) {
    bury(&*harness, &[numbered("a", 5), numbered("b", 2)].concat()).await;
    enqueue(&*harness, &[event("a", "hot")]).await;
    assert_eq!(redrive(&*harness, key_of("a"), 100).await, Redriven { dead: 5, parked: 0 });
    let worker = worker(&*harness).await;
    let expected = [names("a", 1..=5), vec!["hot".to_owned()]].concat();
    assert_eq!(texts(&deliver(&worker, 6).await), expected);
    let left = all_dead(&*harness.inspect()).await;
    assert_eq!(texts(left.iter().map(|dead| &dead.event)), names("b", 1..=2), "another key stays");
}

pub(crate) async fn a_redrive_is_bounded_by_its_limit<H: StoreHarness>(harness: Arc<H>) {
    bury(&*harness, &[numbered("a", 6), vec![loose("loose"), loose("other").target("other")]].concat()).await;
    let target = || Selection::Target(crate::DEFAULT_TARGET.to_owned());
    assert_eq!(redrive(&*harness, target(), 4).await, Redriven { dead: 4, parked: 0 });
    let worker = worker(&*harness).await;
    assert_eq!(texts(&deliver(&worker, 4).await), names("a", 1..=4), "lowest position first");
    stop(worker).await;
    assert_eq!(redrive(&*harness, target(), 100).await, Redriven { dead: 3, parked: 0 });
    assert_eq!(redrive(&*harness, target(), 100).await.dead, 0);
    let worker = super::worker(&*harness).await;
    let keys = by_key(&deliver(&worker, 3).await);
    assert_eq!((&keys["a"], &keys[""]), (&names("a", 5..=6), &vec!["loose".to_owned()]));
}

pub(crate) async fn a_redrive_of_nothing_is_nothing<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 2)).await;
    let inspect = harness.inspect();
    for selection in [
        Selection::Event(EventId::generate()),
        key_of("a"),
        key_of("nobody"),
        Selection::Target("nowhere".to_owned()),
    ] {
        let ask = Redrive { selection, limit: 10, dry_run: false, by: "suite".to_owned() };
        assert_eq!(inspect.redrive(&ask).await.unwrap(), Redriven::default(), "{}", ask.selection);
    }
    let worker = worker(&*harness).await;
    assert_eq!(texts(&deliver(&worker, 2).await), names("a", 1..=2));
}

/// A retry that is far off is brought forward, and with it what waits behind.
pub(crate) async fn parked_events_are_due_at_once_when_redriven<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &[numbered("a", 3), numbered("b", 1)].concat()).await;
    let first = worker(&*harness).await;
    let claimed = claim(&first, 4).await;
    let outcomes: Vec<_> = claimed
        .iter()
        .map(|claimed| {
            let is_head = ["a1", "b1"].contains(&super::text(&claimed.event).as_str());
            (claimed.receipt(), if is_head { Outcome::retry(HOUR, "no") } else { Outcome::Release })
        })
        .collect();
    first.settle(&outcomes).await.unwrap();
    stop(first).await;
    assert_eq!(redrive(&*harness, key_of("a"), 10).await, Redriven { dead: 0, parked: 1 });
    let worker = worker(&*harness).await;
    let delivered = deliver(&worker, 3).await;
    assert_eq!(texts(&delivered), names("a", 1..=3));
    assert_eq!(delivered[0].attempts, Attempts::default());
    let parked = harness.inspect().parked_keys(crate::DEFAULT_TARGET, 10).await.unwrap();
    assert_eq!((parked.len(), parked[0].key.as_deref()), (1, Some("b")));
}

/// One that was dead comes back before one that waits for its retry; the rest of the key comes after both.
pub(crate) async fn a_dead_event_comes_back_before_a_parked_one<H: StoreHarness>(harness: Arc<H>) {
    let ids = bury(&*harness, &numbered("a", 1)).await;
    enqueue(&*harness, &[event("a", "a2"), event("a", "a3")]).await;
    let first = worker(&*harness).await;
    let claimed = claim(&first, 2).await;
    super::fail_first(&first, &claimed, Outcome::retry(Duration::from_millis(300), "no")).await;
    stop(first).await;
    redrive(&*harness, Selection::Event(ids[0]), 10).await;
    let worker = worker(&*harness).await;
    assert_eq!(texts(&deliver(&worker, 3).await), names("a", 1..=3));
}

/// The rest of a diverted key stays dead, and new ones still follow it.
pub(crate) async fn a_diverted_key_that_comes_back_in_part_stays_diverted<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 4)).await;
    give_up_first(&*harness, OnExhausted::Divert, "a", 4).await;
    let first = worker(&*harness).await;
    super::until("all of the key is dead", || async {
        super::nothing_more(&first).await;
        all_dead(&*harness.inspect()).await.len() == 4
    })
    .await;
    stop(first).await;
    assert_eq!(redrive(&*harness, key_of("a"), 2).await, Redriven { dead: 2, parked: 0 });
    enqueue(&*harness, &[event("a", "late")]).await;
    let second = worker(&*harness).await;
    assert_eq!(texts(&deliver(&second, 2).await), names("a", 1..=2));
    super::until("what comes later goes where its key went", || async {
        super::nothing_more(&second).await;
        all_dead(&*harness.inspect()).await.len() == 3
    })
    .await;
    stop(second).await;
    assert_eq!(redrive(&*harness, key_of("a"), 100).await, Redriven { dead: 3, parked: 0 });
    let third = worker(&*harness).await;
    let expected = [names("a", 3..=4), vec!["late".to_owned()]].concat();
    assert_eq!(texts(&deliver(&third, 3).await), expected);
    enqueue(&*harness, &[event("a", "free")]).await;
    assert_eq!(texts(&deliver(&third, 1).await), ["free"]);
}

/// That some key is diverted is no business of another whose dead letters come back one by one.
pub(crate) async fn a_redrive_diverts_no_other_key<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("diverted", 1)).await;
    give_up_first(&*harness, OnExhausted::Divert, "diverted", 1).await;
    let ids = bury(&*harness, &numbered("a", 3)).await;
    redrive(&*harness, Selection::Event(ids[0]), 10).await;
    enqueue(&*harness, &[event("a", "hot")]).await;
    let worker = worker(&*harness).await;
    assert_eq!(texts(&deliver(&worker, 2).await), ["a1", "hot"]);
    assert_eq!(all_dead(&*harness.inspect()).await.len(), 3);
}

/// What came back may fail again, and does so like any other.
pub(crate) async fn what_came_back_can_fail_again<H: StoreHarness>(harness: Arc<H>) {
    let ids = bury(&*harness, &numbered("a", 2)).await;
    redrive(&*harness, key_of("a"), 10).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 2).await;
    super::fail_first(&worker, &claimed, Outcome::rejected("still not")).await;
    assert_eq!(texts(&deliver(&worker, 1).await), ["a2"]);
    match harness.inspect().explain(ids[0]).await.unwrap() {
        Explanation::Dead { failure, attempts, .. } => {
            assert_eq!((failure.error.as_str(), attempts.failures), ("still not", 1));
        }
        other => panic!("a dead letter is explained by {other:?}"),
    }
}

/// Redriven while the key's next event is in flight: it waits for that one, and comes then.
pub(crate) async fn an_event_redriven_under_way_waits_for_its_key<H: StoreHarness>(harness: Arc<H>) {
    let ids = bury(&*harness, &numbered("a", 1)).await;
    enqueue(&*harness, &[event("a", "a2"), event("a", "a3")]).await;
    let worker = super::start(harness.store(), |config| config.run = 1).await;
    let claimed = claim(&worker, 1).await;
    redrive(&*harness, Selection::Event(ids[0]), 10).await;
    super::nothing_more(&worker).await;
    settle(&worker, &claimed, &Outcome::Published).await;
    assert_eq!(texts(&deliver(&worker, 2).await), ["a1", "a3"]);
}

/// A blocked event that is redriven keeps its place, and those behind it theirs.
pub(crate) async fn a_blocked_event_redriven_alone_frees_its_key<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &numbered("a", 3)).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let attempts = Attempts { failures: 3, crashes: 0 };
    let blocked =
        Change::Park { reason: Reason::Blocked, due: Due::Never, attempts, failure: Some(failure()) };
    let behind = || Change::Park {
        reason: Reason::Behind,
        due: Due::Never,
        attempts: Attempts::default(),
        failure: None,
    };
    owner.settle(&[(&rows[0], blocked), (&rows[1], behind()), (&rows[2], behind())]).await;
    assert!(owner.due().await.is_empty());
    assert_eq!(redrive(&*harness, Selection::Event(ids[0]), 1).await, Redriven { dead: 0, parked: 1 });
    assert_eq!(texts(events(&owner.due().await)), names("a", 1..=3));
}
