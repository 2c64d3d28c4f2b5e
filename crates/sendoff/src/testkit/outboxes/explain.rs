//! Why an event has not been delivered.

use std::sync::Arc;
use std::time::SystemTime;

use super::{
    HOUR, LONG, Owner, claim, deliver, enqueue, event, failure, loose, numbered, settle, start, worker,
};
use crate::claim::Timestamp;
use crate::event::{Attempts, EventId};
use crate::outbox::{Change, Due, Explanation, Outcome, Reason};
use crate::testkit::StoreHarness;

fn now() -> i64 {
    Timestamp::from(SystemTime::now()).as_micros()
}

const MINUTE: i64 = 60_000_000;

pub(crate) async fn there_is_no_such_event<H: StoreHarness>(harness: Arc<H>) {
    let explanation = harness.inspect().explain(EventId::generate()).await.unwrap();
    assert_eq!(explanation, Explanation::NoSuchEvent);
    assert_eq!(harness.inspect().get(EventId::generate()).await.unwrap(), None);
    let ids = enqueue(&*harness, &[loose("one")]).await;
    let worker = worker(&*harness).await;
    deliver(&worker, 1).await;
    assert_eq!(harness.inspect().explain(ids[0]).await.unwrap(), Explanation::NoSuchEvent, "it is not kept");
}

pub(crate) async fn it_was_published<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &[loose("one")]).await;
    let worker = start(harness.store_with_history(), |_| ()).await;
    deliver(&worker, 1).await;
    match harness.inspect().explain(ids[0]).await.unwrap() {
        Explanation::Published { at } => assert!((at - now()).abs() < MINUTE, "published at {at}"),
        other => panic!("a published event is explained by {other:?}"),
    }
}

pub(crate) async fn no_worker_is_there<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &[loose("one")]).await;
    let inspect = harness.inspect();
    assert_eq!(inspect.explain(ids[0]).await.unwrap(), Explanation::NoWorker);
    let other = Owner::join_target(harness.store(), LONG, "other").await;
    assert_eq!(inspect.explain(ids[0]).await.unwrap(), Explanation::NoWorker, "one of another target");
    other.leave().await;
    let lost = Owner::join(harness.store(), LONG).await;
    assert!(
        matches!(inspect.explain(ids[0]).await.unwrap(), Explanation::Unleased { .. }),
        "one may take it"
    );
    lost.lapse(&*harness).await;
    assert_eq!(inspect.explain(ids[0]).await.unwrap(), Explanation::NoWorker, "it is lost");
}

pub(crate) async fn it_is_leased_by_whom_and_until_when<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &numbered("a", 3)).await;
    let worker = start(harness.store(), |config| "somebody".clone_into(&mut config.name)).await;
    for (index, id) in ids.iter().enumerate() {
        match harness.inspect().explain(*id).await.unwrap() {
            Explanation::Leased { worker: owner, name, until, before, .. } => {
                assert_eq!((owner, name.as_str(), before), (worker.id(), "somebody", index as u64));
                assert!((until - now() - 30_000_000).abs() < MINUTE, "leased until {until}");
            }
            other => panic!("an event in a leased lane is explained by {other:?}"),
        }
    }
}

pub(crate) async fn its_sink_is_down<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &[loose("one")]).await;
    let worker = start(harness.store(), |config| "somebody".clone_into(&mut config.name)).await;
    let other = Owner::join_target(harness.store(), LONG, "other").await;
    harness.store().note_sink(&other.member, Some("that of another")).await.unwrap();
    let inspect = harness.inspect();
    assert!(matches!(inspect.explain(ids[0]).await.unwrap(), Explanation::Leased { .. }));
    worker.note_sink(Some("an older story")).await.unwrap();
    let long = format!("no route, it's \"gone\"{}", "!".repeat(2_000));
    worker.note_sink(Some(&long)).await.unwrap();
    match inspect.explain(ids[0]).await.unwrap() {
        Explanation::SinkDown { worker: owner, name, down, .. } => {
            assert_eq!((owner, name.as_str()), (worker.id(), "somebody"));
            assert!((down.since - now()).abs() < MINUTE, "down since {}", down.since);
            assert!(down.error.starts_with("no route, it's \"gone\"!"), "{}", down.error);
        }
        other => panic!("an event whose sink is down is explained by {other:?}"),
    }
    let down = |workers: Vec<crate::outbox::WorkerInfo>| -> Vec<bool> {
        workers.iter().map(|worker| worker.sink_down.is_some()).collect()
    };
    assert_eq!(down(inspect.workers().await.unwrap()), [true, true]);
    worker.note_sink(None).await.unwrap();
    assert!(matches!(inspect.explain(ids[0]).await.unwrap(), Explanation::Leased { .. }), "it is back");
    other.leave().await;
    assert_eq!(down(inspect.workers().await.unwrap()), [false]);
}

pub(crate) async fn its_worker_is_lost<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &[loose("one")]).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    owner.lapse(&*harness).await;
    match harness.inspect().explain(ids[0]).await.unwrap() {
        Explanation::Abandoned { worker, .. } => assert_eq!(worker, owner.member.worker),
        other => panic!("an abandoned event is explained by {other:?}"),
    }
}

pub(crate) async fn it_is_not_due<H: StoreHarness>(harness: Arc<H>) {
    let at = Timestamp::from(SystemTime::now() + HOUR);
    let ids = enqueue(&*harness, &[event("a", "later").deliver_at(at)]).await;
    let not_due = Explanation::NotDue { at: at.as_micros() };
    assert_eq!(harness.inspect().explain(ids[0]).await.unwrap(), not_due, "as it was written");
    let worker = worker(&*harness).await;
    super::nothing_more(&worker).await;
    assert_eq!(harness.inspect().explain(ids[0]).await.unwrap(), not_due, "and parked");
}

pub(crate) async fn it_is_parked_or_behind_one_that_is<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &numbered("a", 2)).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 2).await;
    super::fail_first(&worker, &claimed, Outcome::retry(HOUR, "no")).await;
    let inspect = harness.inspect();
    match inspect.explain(ids[0]).await.unwrap() {
        Explanation::Parked { until: Some(until), failure: Some(failure), attempts } => {
            assert!((until - now() - 60 * MINUTE).abs() < MINUTE, "parked until {until}");
            assert_eq!((failure.error.as_str(), attempts.failures), ("no", 1));
        }
        other => panic!("a parked event is explained by {other:?}"),
    }
    let behind = Explanation::Behind { event: ids[0], position: claimed[0].event.position };
    assert_eq!(inspect.explain(ids[1]).await.unwrap(), behind);
    let late = enqueue(&*harness, &[event("a", "late")]).await;
    assert_eq!(inspect.explain(late[0]).await.unwrap(), behind, "also before it is moved");
}

pub(crate) async fn it_waits_for_an_operator<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &numbered("a", 1)).await;
    let owner = Owner::of_all(&*harness, LONG).await;
    let rows = owner.hot().await;
    let attempts = Attempts { failures: 5, crashes: 1 };
    let blocked =
        Change::Park { reason: Reason::Blocked, due: Due::Never, attempts, failure: Some(failure()) };
    owner.settle(&[(&rows[0], blocked)]).await;
    let expected = Explanation::Parked { until: None, failure: Some(failure()), attempts };
    assert_eq!(harness.inspect().explain(ids[0]).await.unwrap(), expected);
}

pub(crate) async fn it_is_dead<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &[event("a", "one"), loose("two")]).await;
    let worker = worker(&*harness).await;
    let claimed = claim(&worker, 2).await;
    settle(&worker, &claimed, &Outcome::rejected("never")).await;
    for id in ids {
        match harness.inspect().explain(id).await.unwrap() {
            Explanation::Dead { since, failure, attempts } => {
                assert!((since - now()).abs() < MINUTE, "dead since {since}");
                assert_eq!((failure.error.as_str(), attempts.failures), ("never", 1));
            }
            other => panic!("a dead letter is explained by {other:?}"),
        }
    }
}

pub(crate) async fn its_target_is_paused<H: StoreHarness>(harness: Arc<H>) {
    let ids = enqueue(&*harness, &[loose("one"), loose("two").target("other")]).await;
    let inspect = harness.inspect();
    inspect.set_paused(crate::DEFAULT_TARGET, true, "suite").await.unwrap();
    let _worker = worker(&*harness).await;
    assert_eq!(inspect.explain(ids[0]).await.unwrap(), Explanation::TargetPaused);
    assert_eq!(inspect.explain(ids[1]).await.unwrap(), Explanation::NoWorker, "another target");
    inspect.set_paused(crate::DEFAULT_TARGET, false, "suite").await.unwrap();
    assert!(matches!(inspect.explain(ids[0]).await.unwrap(), Explanation::Leased { .. }));
}
