//! What an operator sees, and does.

use std::sync::Arc;
use std::time::Duration;

use super::{LONG, claim, claim_one, complete, get, history, ids, join, later, status, submit};
use crate::error::StoreErrorKind;
use crate::tasks::{Listing, NewTask, Settled, TaskEventKind, TaskId, TaskStatus};
use crate::testkit::task_harness::TaskHarness;

pub(in crate::testkit) async fn tasks_are_listed_page_by_page<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let tasks = submit(&*harness, (0..9).map(|number| NewTask::new(["a", "b", "c"][number % 3]))).await;
    let inspect = harness.inspect();
    let mut expected: Vec<TaskId> =
        [0, 3, 6, 1, 4, 7, 2, 5, 8].into_iter().map(|number: usize| tasks[number]).collect();
    let mut listing = Listing::of(TaskStatus::Ready).limit(2);
    let mut seen = Vec::new();
    loop {
        let page = inspect.list(&listing).await.unwrap();
        assert!(page.len() <= 2);
        let Some(last) = page.last() else { break };
        listing = Listing::of(TaskStatus::Ready).limit(2).after(last);
        seen.extend(ids(&page));
    }
    assert_eq!(seen, expected, "by kind, then by age");
    assert_eq!(ids(&inspect.list(&Listing::of(TaskStatus::Ready).kind("b")).await.unwrap()), expected[3..6]);
    let claimed = claim(&*harness, &worker, 2).await;
    assert_eq!(ids(&inspect.list(&Listing::of(TaskStatus::Running)).await.unwrap()), expected[..2]);
    complete(&*harness, claimed[0].token().unwrap()).await;
    let stats = inspect.stats().await.unwrap();
    let counts = |kind, status| stats.count(kind, status);
    assert_eq!(counts("a", TaskStatus::Completed), 1);
    assert_eq!(counts("a", TaskStatus::Running), 1);
    assert_eq!(counts("a", TaskStatus::Ready), 1);
    assert_eq!(counts("b", TaskStatus::Ready), 3);
    assert_eq!(counts("b", TaskStatus::Failed), 0);
    expected.clear();
    assert_eq!(ids(&inspect.list(&Listing::of(TaskStatus::Failed)).await.unwrap()), expected);
    assert!(inspect.get(TaskId::generate()).await.unwrap().is_none());
}

pub(in crate::testkit) async fn an_operator_tries_a_task_again<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let inspect = harness.inspect();
    let id = submit(&*harness, [NewTask::new("a").attempts_max(1)]).await[0];
    assert_eq!(inspect.retry(id, "me").await.unwrap(), Settled::Stale, "it has not ended");
    let token = claim_one(&*harness, &worker).await;
    harness.store().fail(&token, "no").await.unwrap();
    assert_eq!(inspect.retry(id, "me").await.unwrap(), Settled::Applied);
    let task = get(&*harness, id).await;
    assert_eq!((task.status, task.finished_at), (TaskStatus::Ready, None));
    let again = claim_one(&*harness, &worker).await;
    assert_eq!(again.attempt, 2);
    assert_eq!(complete(&*harness, token).await, Settled::Stale);
    assert_eq!(complete(&*harness, again).await, Settled::Applied);
    assert_eq!(inspect.retry(id, "me").await.unwrap(), Settled::Stale, "what is done stays done");
    assert_eq!(inspect.retry(TaskId::generate(), "me").await.unwrap(), Settled::Stale);

    let cancelled = submit(&*harness, [NewTask::new("a")]).await[0];
    inspect.cancel(cancelled, "me").await.unwrap();
    assert_eq!(inspect.retry(cancelled, "me").await.unwrap(), Settled::Applied);
    assert_eq!(history(&*harness, cancelled).await.last(), Some(&TaskEventKind::TaskReady));
    assert_eq!(claim_one(&*harness, &worker).await.task, cancelled);
}

pub(in crate::testkit) async fn a_task_whose_key_is_taken_is_not_tried_again<H: TaskHarness>(
    harness: Arc<H>,
) {
    let keyed = || NewTask::new("a").unique_key("only");
    let first = submit(&*harness, [keyed()]).await[0];
    harness.inspect().cancel(first, "me").await.unwrap();
    let second = submit(&*harness, [keyed()]).await[0];
    let error = harness.inspect().retry(first, "me").await.expect_err("its key is taken");
    assert_eq!(error.kind(), StoreErrorKind::Rejected);
    assert!(error.to_string().contains("unique key"), "{error}");
    assert_eq!(status(&*harness, first).await, TaskStatus::Cancelled);
    harness.inspect().cancel(second, "me").await.unwrap();
    assert_eq!(harness.inspect().retry(first, "me").await.unwrap(), Settled::Applied);
}

pub(in crate::testkit) async fn what_ended_long_ago_is_purged<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a", "b"], LONG).await;
    let tasks = submit(&*harness, (0..6).map(|number| NewTask::new(["a", "b"][number % 2]))).await;
    let claimed = claim(&*harness, &worker, 4).await;
    for task in &claimed[..3] {
        complete(&*harness, task.token().unwrap()).await;
    }
    let inspect = harness.inspect();
    let ended = get(&*harness, tasks[2]).await.finished_at.unwrap();
    let before = crate::claim::Timestamp::from_micros(ended.as_micros() - 3_600_000_000);
    assert_eq!(inspect.purge(before, 100).await.unwrap(), 0, "they ended after that");
    let after = later(ended, Duration::from_secs(3_600));
    let now = inspect.now().await.unwrap();
    assert!(ended <= now && now < after, "its clock is the one that tasks end by: {now:?}, {ended:?}");
    assert_eq!(inspect.purge(after, 2).await.unwrap(), 2);
    assert_eq!(inspect.purge(after, 100).await.unwrap(), 1);
    assert_eq!(inspect.purge(after, 100).await.unwrap(), 0);
    for id in &tasks[..3] {
        assert!(inspect.get(*id).await.unwrap().is_none(), "with all that happened to it");
    }
    assert_eq!(status(&*harness, tasks[3]).await, TaskStatus::Running, "what is live stays");
    history(&*harness, tasks[4]).await;
}
