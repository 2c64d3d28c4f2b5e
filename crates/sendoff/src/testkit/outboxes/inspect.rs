//! What operators see and do.

use std::sync::Arc;
use std::time::Duration;

use super::{
    HOUR, LEASE, LONG, Owner, claim, deliver, enqueue, event, failure, lane_mates, loose, numbered, settle,
    start, text, until, worker,
};
use crate::event::{Attempts, EventId};
use crate::outbox::{
    Change, Discard, Due, EventState, Inspect, LANES, ListQuery, OnExhausted, Outcome, Purge, Reason,
    Selection, TargetCounts,
};
use crate::testkit::StoreHarness;

async fn counts(inspect: &dyn Inspect, target: &str) -> TargetCounts {
    let counts = inspect.counts().await.unwrap();
    assert!(counts.targets.is_sorted_by(|a, b| a.target < b.target), "in the order of their names");
    counts.targets.into_iter().find(|counts| counts.target == target).unwrap_or_default()
}

async fn list(
    inspect: &dyn Inspect,
    state: EventState,
    after: i64,
    limit: u32,
) -> Vec<(String, i64, EventId)> {
    let query = ListQuery { target: crate::DEFAULT_TARGET.to_owned(), state, after, limit };
    let listed = inspect.list(&query).await.unwrap();
    assert!(listed.iter().all(|listed| listed.state == state), "a list of {state} events");
    listed.into_iter().map(|one| (text(&one.event), one.event.position, one.event.event_id)).collect()
}

/// Events in every state: `published`, `failed` (a head, one behind it), `dead`, then one per hot state.
async fn one_of_each<H: StoreHarness>(harness: &H) {
    let words = ["published", "failed", "failed", "dead", "dead"];
    let mut new: Vec<_> =
        words.iter().zip(["a", "b", "b", "c", "d"]).map(|(word, key)| event(key, word)).collect();
    new.push(loose("elsewhere").target("other"));
    enqueue(harness, &new).await;
    let mut owner = Owner::join(harness.store_with_history(), LONG).await;
    assert_eq!(owner.take(LANES).await.len(), usize::from(LANES));
    let rows = owner.hot().await;
    let attempts = Attempts { failures: 1, crashes: 0 };
    let park = |reason, due| Change::Park { reason, due, attempts, failure: Some(failure()) };
    let bury = |diverts| Change::Bury { attempts, failure: failure(), diverts };
    let kinds = [
        Change::Publish,
        park(Reason::Retry, Due::In(HOUR)),
        park(Reason::Behind, Due::Never),
        bury(false),
        bury(true),
    ];
    let changes: Vec<_> = rows.iter().zip(kinds).collect();
    assert_eq!(owner.settle(&changes).await, Default::default());
    owner.leave().await;
}

pub(crate) async fn events_are_counted_and_listed_by_state<H: StoreHarness>(harness: Arc<H>) {
    one_of_each(&*harness).await;
    let inspect = harness.inspect();
    let hot = enqueue(&*harness, &[event("e", "hot"), loose("hot")]).await;
    let check = |state: EventState| {
        let (inspect, hot) = (harness.inspect(), hot.clone());
        async move {
            let counts = counts(&*inspect, crate::DEFAULT_TARGET).await;
            for (other, fixed) in [(EventState::Published, 1), (EventState::Failed, 2), (EventState::Dead, 2)]
            {
                assert_eq!(counts.of(other), fixed, "{other} events");
                let listed = list(&*inspect, other, 0, 10).await;
                assert!(listed.iter().all(|one| one.0 == other.word()), "{other}: {listed:?}");
                assert_eq!(listed.len() as u64, fixed);
            }
            for other in [EventState::Unprocessed, EventState::Processing, EventState::Abandoned] {
                let expected = if other == state { 2 } else { 0 };
                assert_eq!(counts.of(other), expected, "{other} events while they are {state}");
                assert_eq!(list(&*inspect, other, 0, 10).await.len() as u64, expected);
            }
            for id in hot {
                assert_eq!(inspect.get(id).await.unwrap().unwrap().state, state);
            }
        }
    };
    check(EventState::Unprocessed).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    check(EventState::Processing).await;
    owner.lapse(&*harness).await;
    check(EventState::Abandoned).await;
    owner.leave().await;
    check(EventState::Unprocessed).await;
    let other = counts(&*inspect, "other").await;
    assert_eq!((other.unprocessed, other.failed, other.dead, other.published), (1, 0, 0, 0));
}

pub(crate) async fn the_oldest_event_that_waits_is_known<H: StoreHarness>(harness: Arc<H>) {
    let inspect = harness.inspect();
    let worker = worker(&*harness).await;
    assert_eq!(counts(&*inspect, crate::DEFAULT_TARGET).await.oldest, None);
    enqueue(&*harness, &[event("a", "old")]).await;
    harness.pass(Duration::from_millis(400)).await;
    enqueue(&*harness, &[event("b", "new")]).await;
    let claimed = claim(&worker, 2).await;
    let age = counts(&*inspect, crate::DEFAULT_TARGET).await.oldest.unwrap();
    assert!(age >= Duration::from_millis(390) && age < Duration::from_secs(15), "{age:?}");
    settle(&worker, &claimed[..1], &Outcome::retry(HOUR, "no")).await;
    settle(&worker, &claimed[1..], &Outcome::Published).await;
    let still = counts(&*inspect, crate::DEFAULT_TARGET).await.oldest;
    assert!(still.is_some(), "a parked event waits too");
}

pub(crate) async fn lists_are_paged_by_position<H: StoreHarness>(harness: Arc<H>) {
    let all: Vec<_> = (0..25).map(|number| loose(&number.to_string())).collect();
    enqueue(&*harness, &all).await;
    let inspect = harness.inspect();
    let whole = list(&*inspect, EventState::Unprocessed, 0, 100).await;
    assert_eq!(whole.len(), 25);
    assert!(whole.is_sorted_by_key(|one| one.1), "lowest position first");
    let mut pages = Vec::new();
    loop {
        let after = pages.last().map_or(0, |one: &(String, i64, EventId)| one.1);
        let page = list(&*inspect, EventState::Unprocessed, after, 10).await;
        assert!(page.len() <= 10);
        if page.is_empty() {
            break;
        }
        pages.extend(page);
    }
    assert_eq!(pages, whole);
    assert!(list(&*inspect, EventState::Unprocessed, 0, 0).await.is_empty());
}

/// A page of dead letters, of history and of what is parked begins after the last one too.
pub(crate) async fn every_list_is_paged<H: StoreHarness>(harness: Arc<H>) {
    one_of_each(&*harness).await;
    let inspect = harness.inspect();
    for state in [EventState::Failed, EventState::Dead, EventState::Published] {
        let whole = list(&*inspect, state, 0, 100).await;
        let first = list(&*inspect, state, 0, 1).await;
        assert_eq!(first, whole[..1]);
        assert_eq!(list(&*inspect, state, first[0].1, 100).await, whole[1..], "{state}");
    }
}

pub(crate) async fn what_is_listed_says_all_that_is_known<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &[event("a", "a1").header("h", "v").content_type("text/plain")]).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 1).await;
    settle(&worker, &claimed, &Outcome::retry(HOUR, "no")).await;
    let listed = harness.inspect().get(ids[0]).await.unwrap().unwrap();
    let event =
        crate::event::Event { attempts: Attempts { failures: 1, crashes: 0 }, ..claimed[0].event.clone() };
    assert_eq!(listed.event, event);
    assert_eq!((listed.state, listed.reason), (EventState::Failed, Some(Reason::Retry)));
    assert!(listed.due_at > listed.since && listed.since.is_some());
    assert_eq!(listed.failure.unwrap().error, "no");
}

pub(crate) async fn lanes_are_shown_with_their_owners<H: StoreHarness>(harness: Arc<H>) {
    let inspect = harness.inspect();
    assert!(inspect.lanes("nowhere").await.unwrap().is_empty());
    let worker = start(harness.store(), |config| "somebody".clone_into(&mut config.name)).await;
    let lanes = inspect.lanes(crate::DEFAULT_TARGET).await.unwrap();
    assert_eq!(lanes.iter().map(|lane| lane.lane).collect::<Vec<_>>(), (0..LANES).collect::<Vec<_>>());
    for lane in lanes {
        assert_eq!((lane.owner, lane.name.as_deref()), (Some(worker.id()), Some("somebody")));
        assert!(lane.lease_until.is_some() && !lane.expired && lane.epoch >= 1 && lane.crashes == 0);
    }
    super::stop(worker).await;
    Owner::of_all(&*harness, LONG).await.lapse(&*harness).await;
    let lanes = inspect.lanes(crate::DEFAULT_TARGET).await.unwrap();
    assert!(lanes.iter().all(|lane| lane.expired && lane.epoch >= 2));
}

pub(crate) async fn workers_are_shown_with_their_lanes<H: StoreHarness>(harness: Arc<H>) {
    let inspect = harness.inspect();
    assert!(inspect.workers().await.unwrap().is_empty());
    let named = |name: &'static str| {
        start(harness.store(), move |config: &mut crate::outbox::WorkerConfig| {
            name.clone_into(&mut config.name);
        })
    };
    let (second, first) = (named("b").await, named("a").await);
    until("the lanes are shared", || async {
        first.claim(0).await.unwrap();
        second.claim(0).await.unwrap();
        let workers = inspect.workers().await.unwrap();
        workers.iter().all(|worker| worker.lanes == u64::from(LANES / 2))
    })
    .await;
    let workers = inspect.workers().await.unwrap();
    let shown: Vec<_> = workers.iter().map(|worker| (worker.worker, worker.name.as_str())).collect();
    assert_eq!(shown, [(first.id(), "a"), (second.id(), "b")], "by name");
    for worker in &workers {
        assert_eq!((worker.target.as_str(), worker.expired), (crate::DEFAULT_TARGET, false));
        assert!(worker.lease_until > worker.started_at);
    }
    super::stop(second).await;
    super::stop(first).await;
    assert!(inspect.workers().await.unwrap().is_empty(), "who has left is not there");
    Owner::of_all(&*harness, LONG).await.lapse(&*harness).await;
    let lost = inspect.workers().await.unwrap();
    assert!(lost.len() == 1 && lost[0].expired, "who was lost is shown as such: {lost:?}");
}

pub(crate) async fn parked_keys_are_shown_with_what_waits_behind<H: StoreHarness>(harness: Arc<H>) {
    let mates = lane_mates(&*harness, 2).await;
    enqueue(&*harness, &[numbered(&mates[0], 3), numbered(&mates[1], 2), vec![loose("loose")]].concat())
        .await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let park = |reason, due, failure| Change::Park { reason, due, attempts: Attempts::default(), failure };
    let kinds = [
        park(Reason::Retry, Due::In(HOUR), Some(failure())),
        park(Reason::Behind, Due::Never, None),
        park(Reason::Behind, Due::Never, None),
        park(Reason::Blocked, Due::Never, Some(failure())),
        park(Reason::Behind, Due::Never, None),
        park(Reason::Retry, Due::In(HOUR), None),
    ];
    let changes: Vec<_> = rows.iter().zip(kinds).collect();
    owner.settle(&changes).await;
    let keys = harness.inspect().parked_keys(crate::DEFAULT_TARGET, 10).await.unwrap();
    let shown: Vec<_> =
        keys.iter().map(|info| (info.key.as_ref(), info.position, info.reason, info.behind)).collect();
    let position = |index: usize| rows[index].event.position;
    let expected = [
        (Some(&mates[0]), position(0), Reason::Retry, 2),
        (Some(&mates[1]), position(3), Reason::Blocked, 1),
        (None, position(5), Reason::Retry, 0),
    ];
    assert_eq!(shown, expected);
    assert_eq!((keys[0].due_at.is_some(), keys[1].due_at), (true, None));
    assert_eq!((keys[0].failure.clone(), keys[2].failure.clone()), (Some(failure()), None));
    assert_eq!(harness.inspect().parked_keys(crate::DEFAULT_TARGET, 2).await.unwrap().len(), 2);
    assert!(harness.inspect().parked_keys("other", 2).await.unwrap().is_empty());
}

pub(crate) async fn a_purge_deletes_what_is_old_in_batches<H: StoreHarness>(harness: Arc<H>) {
    one_of_each(&*harness).await;
    one_of_each(&*harness).await;
    harness.pass(Duration::from_millis(200)).await;
    let inspect = harness.inspect();
    let target = || crate::DEFAULT_TARGET.to_owned();
    let old = Duration::from_millis(100);
    for young in [
        Purge::Dead { target: target(), older_than: HOUR },
        Purge::Published { target: target(), older_than: HOUR },
        Purge::Dead { target: "other".to_owned(), older_than: old },
    ] {
        assert_eq!(inspect.purge(&young, 100).await.unwrap(), 0, "{young:?}");
    }
    let dead = Purge::Dead { target: target(), older_than: old };
    assert_eq!(inspect.purge(&dead, 3).await.unwrap(), 3, "a batch");
    assert_eq!(counts(&*inspect, crate::DEFAULT_TARGET).await.dead, 1, "the rest is for the next call");
    assert_eq!(inspect.purge(&dead, 3).await.unwrap(), 1);
    let published = Purge::Published { target: target(), older_than: old };
    assert_eq!(inspect.purge(&published, 100).await.unwrap(), 2);
    let left = counts(&*inspect, crate::DEFAULT_TARGET).await;
    assert_eq!((left.dead, left.published, left.failed), (0, 0, 4), "what is not old history stays");
    assert_eq!(counts(&*inspect, "other").await.unprocessed, 2);
}

fn discard(selection: Selection, limit: u32, dry_run: bool) -> Discard {
    Discard { selection, limit, dry_run, by: "suite".to_owned() }
}

pub(crate) async fn what_is_dead_can_be_discarded<H: StoreHarness>(harness: Arc<H>) {
    let numbered = [numbered("a", 3), numbered("b", 3), vec![loose("loose")]].concat();
    let ids = super::redrive::bury(&*harness, &numbered).await;
    enqueue(&*harness, &[event("a", "open")]).await;
    let inspect = harness.inspect();
    let target = || Selection::Target(crate::DEFAULT_TARGET.to_owned());
    assert_eq!(inspect.discard(&discard(target(), 100, true)).await.unwrap(), 7, "a dry run counts");
    assert_eq!(counts(&*inspect, crate::DEFAULT_TARGET).await.dead, 7, "and deletes nothing");
    assert_eq!(inspect.discard(&discard(Selection::Event(ids[0]), 100, false)).await.unwrap(), 1);
    assert_eq!(inspect.get(ids[0]).await.unwrap(), None, "it is gone");
    assert_eq!(inspect.discard(&discard(Selection::Event(ids[0]), 100, false)).await.unwrap(), 0);
    assert_eq!(inspect.discard(&discard(super::key_of("a"), 1, false)).await.unwrap(), 1, "a limit");
    assert_eq!(list(&*inspect, EventState::Dead, 0, 10).await[0].0, "a3", "the lowest goes first");
    assert_eq!(inspect.discard(&discard(super::key_of("b"), 100, false)).await.unwrap(), 3);
    assert_eq!(inspect.discard(&discard(target(), 100, false)).await.unwrap(), 2, "the rest");
    let left = counts(&*inspect, crate::DEFAULT_TARGET).await;
    assert_eq!((left.dead, left.unprocessed), (0, 1), "what is not dead stays");
}

pub(crate) async fn a_key_goes_on_when_what_diverted_it_is_discarded<H: StoreHarness>(harness: Arc<H>) {
    enqueue(&*harness, &numbered("a", 1)).await;
    super::dead::give_up_first(&*harness, OnExhausted::Divert, "a", 1).await;
    let gone = harness.inspect().discard(&discard(super::key_of("a"), 10, false)).await.unwrap();
    assert_eq!(gone, 1);
    enqueue(&*harness, &[event("a", "later")]).await;
    let worker = worker(&*harness).await;
    assert_eq!(super::texts(&deliver(&worker, 1).await), ["later"]);
}

pub(crate) async fn a_paused_target_hands_out_nothing<H: StoreHarness>(harness: Arc<H>) {
    let inspect = harness.inspect();
    let quick = |config: &mut crate::outbox::WorkerConfig| config.lease = LEASE;
    let worker = start(harness.store(), quick).await;
    let elsewhere = start(harness.store(), |config| "other".clone_into(&mut config.target)).await;
    inspect.set_paused(crate::DEFAULT_TARGET, true, "suite").await.unwrap();
    inspect.set_paused(crate::DEFAULT_TARGET, true, "suite").await.unwrap();
    assert!(counts(&*inspect, crate::DEFAULT_TARGET).await.paused);
    // Workers look a few times in a lease.
    tokio::time::sleep(LEASE / 2).await;
    enqueue(&*harness, &[loose("here"), loose("there").target("other")]).await;
    super::nothing_more(&worker).await;
    assert_eq!(super::texts(&deliver(&elsewhere, 1).await), ["there"], "another target goes on");
    inspect.set_paused(crate::DEFAULT_TARGET, false, "suite").await.unwrap();
    assert_eq!(super::texts(&deliver(&worker, 1).await), ["here"]);
    until("it is shown as running", || async { !counts(&*inspect, crate::DEFAULT_TARGET).await.paused })
        .await;
    assert_eq!(worker.stats().lost, 0, "a pause loses no lease");
}
