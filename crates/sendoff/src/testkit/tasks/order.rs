//! Which task goes first, and which not yet.

use std::sync::Arc;
use std::time::Duration;

use super::{HOUR, LONG, SHORT, claim, claim_one, entries, ids, join, later, now, submit};
use crate::tasks::{NewTask, Settled, TaskId, When};
use crate::testkit::task_harness::TaskHarness;

pub(in crate::testkit) async fn higher_priority_goes_first_then_what_was_due_first<H: TaskHarness>(
    harness: Arc<H>,
) {
    let worker = join(&*harness, &["a", "b"], LONG).await;
    let now = now(&*harness).await;
    let earlier = |seconds: u64| {
        crate::claim::Timestamp::from_micros(now.as_micros() - 1_000_000 * i64::try_from(seconds).unwrap())
    };
    let tasks = submit(
        &*harness,
        [
            NewTask::new("a").run_at(earlier(5)),
            NewTask::new("b").run_at(earlier(9)),
            NewTask::new("a").priority(3).run_at(earlier(1)),
            NewTask::new("b").priority(-2).run_at(earlier(60)),
            NewTask::new("b").priority(3).run_at(earlier(1)),
        ],
    )
    .await;
    // Of two that are equal in all else the one that was created first.
    let expected: Vec<TaskId> = [2, 4, 1, 0, 3].into_iter().map(|number: usize| tasks[number]).collect();
    let mut taken = Vec::new();
    for _ in 0..5 {
        taken.extend(ids(&claim(&*harness, &worker, 1).await));
    }
    assert_eq!(taken, expected);
    let more = submit(&*harness, [NewTask::new("b"), NewTask::new("a").priority(1)]).await;
    assert_eq!(ids(&claim(&*harness, &worker, 10).await), [more[1], more[0]], "one claim is in order too");
}

pub(in crate::testkit) async fn a_task_for_later_is_not_claimed_before_its_time<H: TaskHarness>(
    harness: Arc<H>,
) {
    let worker = join(&*harness, &["a"], LONG).await;
    let now = now(&*harness).await;
    let soon = later(now, Duration::from_secs(2));
    let tasks = submit(
        &*harness,
        [
            NewTask::new("a").priority(100).run_at(soon),
            NewTask::new("a"),
            NewTask::new("a").priority(100).run_at(later(now, HOUR)),
        ],
    )
    .await;
    assert_eq!(ids(&claim(&*harness, &worker, 10).await), [tasks[1]], "what is not due holds nothing up");
    assert_eq!(entries(&*harness, "a").await, (0, 2));
    harness.pass(Duration::from_millis(2_100)).await;
    assert_eq!(ids(&claim(&*harness, &worker, 10).await), [tasks[0]]);
}

pub(in crate::testkit) async fn a_retry_is_not_claimable_before_its_time<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let id = submit(&*harness, [NewTask::new("a")]).await[0];
    let store = harness.store();
    let token = claim_one(&*harness, &worker).await;
    let retried = store.schedule_retry(&token, When::In(SHORT), "not now").await.unwrap();
    assert_eq!(retried, Settled::Applied);
    assert!(claim(&*harness, &worker, 10).await.is_empty(), "its time has not come");
    harness.pass(SHORT + super::LAPSE).await;
    let again = claim(&*harness, &worker, 10).await;
    assert_eq!((ids(&again), again[0].attempt), (vec![id], 2));
    assert_eq!(again[0].error.as_deref(), Some("not now"));

    let at = later(again[0].started_at.unwrap(), HOUR);
    let retried = store.schedule_retry(&again[0].token().unwrap(), When::At(at), "later").await.unwrap();
    assert_eq!(retried, Settled::Applied);
    assert!(claim(&*harness, &worker, 10).await.is_empty());
    assert_eq!(super::get(&*harness, id).await.run_at, at);
}

pub(in crate::testkit) async fn a_task_that_becomes_due_takes_its_turn<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let soon = later(now(&*harness).await, Duration::from_secs(1));
    let urgent = submit(&*harness, [NewTask::new("a").priority(9).run_at(soon)]).await[0];
    submit(&*harness, (0..30).map(|_| NewTask::new("a"))).await;
    harness.pass(Duration::from_millis(1_200)).await;
    // Claims that are all full find it too, in time.
    let mut taken = Vec::new();
    for _ in 0..20 {
        taken.extend(ids(&claim(&*harness, &worker, 1).await));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(taken.contains(&urgent), "an urgent task that has become due was not found by 20 claims");
}
