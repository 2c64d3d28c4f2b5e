//! Tasks in the host's transaction.

use std::sync::Arc;

use super::{LONG, claim, claim_one, complete, entries, history, ids, join, status, submit};
use crate::error::StoreErrorKind;
use crate::tasks::{Created, NewTask, Settled, TaskEventKind, TaskId, TaskStatus};
use crate::testkit::task_harness::{TaskHarness, TaskTransaction as _};

pub(in crate::testkit) async fn a_task_is_claimed_once_it_is_marked_ready<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let mut transaction = harness.begin().await;
    let id = transaction.create(NewTask::new("a").payload("x")).await.unwrap().id();
    transaction.commit().await.unwrap();
    assert_eq!(status(&*harness, id).await, TaskStatus::NotStarted);
    assert!(claim(&*harness, &worker, 10).await.is_empty(), "it is not ready");

    let mut transaction = harness.begin().await;
    assert_eq!(transaction.mark_ready(id).await.unwrap(), Settled::Applied);
    transaction.commit().await.unwrap();
    assert_eq!(entries(&*harness, "a").await, (1, 0), "its entry is written in the same transaction");
    let mut transaction = harness.begin().await;
    assert_eq!(transaction.mark_ready(id).await.unwrap(), Settled::Stale, "it was ready before");
    assert_eq!(transaction.mark_ready(TaskId::generate()).await.unwrap(), Settled::Stale, "there is none");
    transaction.commit().await.unwrap();
    let claimed = claim(&*harness, &worker, 10).await;
    assert_eq!(ids(&claimed), [id]);
    assert_eq!(claimed[0].payload, b"x");
    let expected = [TaskEventKind::TaskCreated, TaskEventKind::TaskReady, TaskEventKind::TaskClaimed];
    assert_eq!(history(&*harness, id).await, expected);
}

pub(in crate::testkit) async fn what_is_rolled_back_was_never_there<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let mut transaction = harness.begin().await;
    let id = transaction.submit(NewTask::new("a")).await.unwrap().id();
    transaction.rollback().await;
    assert!(harness.inspect().get(id).await.unwrap().is_none());
    assert!(claim(&*harness, &worker, 10).await.is_empty());
    assert_eq!(entries(&*harness, "a").await, (0, 0));

    let mut transaction = harness.begin().await;
    let id = transaction.create(NewTask::new("a")).await.unwrap().id();
    transaction.commit().await.unwrap();
    let mut transaction = harness.begin().await;
    assert_eq!(transaction.mark_ready(id).await.unwrap(), Settled::Applied);
    transaction.rollback().await;
    assert!(claim(&*harness, &worker, 10).await.is_empty());
    assert_eq!(history(&*harness, id).await, [TaskEventKind::TaskCreated]);
}

pub(in crate::testkit) async fn a_unique_key_has_one_live_task<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let keyed = || NewTask::new("a").unique_key("only");
    let first = submit(&*harness, [keyed()]).await[0];
    let mut transaction = harness.begin().await;
    assert_eq!(transaction.submit(keyed()).await.unwrap(), Created::Exists(first));
    // The host's transaction goes on.
    let other = transaction.submit(NewTask::new("a").unique_key("other")).await.unwrap();
    assert!(other.is_new());
    assert_eq!(
        transaction.submit(NewTask::new("a").unique_key("other")).await.unwrap(),
        Created::Exists(other.id())
    );
    transaction.commit().await.unwrap();
    assert_eq!(entries(&*harness, "a").await, (2, 0), "what exists was not entered again");

    let token = claim_one(&*harness, &worker).await;
    assert_eq!(token.task, first);
    let mut transaction = harness.begin().await;
    assert_eq!(
        transaction.create(keyed()).await.unwrap(),
        Created::Exists(first),
        "it is live while it runs"
    );
    transaction.rollback().await;
    assert_eq!(complete(&*harness, token).await, Settled::Applied);
    let second = submit(&*harness, [keyed()]).await[0];
    assert_ne!(first, second, "the key is free when its task has ended");
    assert_eq!(harness.inspect().cancel(second, "a test").await.unwrap(), Settled::Applied);
    assert_ne!(submit(&*harness, [keyed()]).await[0], second);
}

pub(in crate::testkit) async fn a_task_beyond_the_limits_is_refused<H: TaskHarness>(harness: Arc<H>) {
    for task in [NewTask::new(""), NewTask::new("a").unique_key("\n"), NewTask::new("a").attempts_max(0)] {
        let mut transaction = harness.begin().await;
        let error = transaction.submit(task).await.expect_err("it is refused");
        assert_eq!(error.kind(), StoreErrorKind::Rejected, "{error}");
        transaction.rollback().await;
    }
    // What is within them survives as it is, whatever its bytes.
    let worker = join(&*harness, &["ä \"quoted\" `kind`"], LONG).await;
    let payload: Vec<u8> = (0..=255).collect();
    let task = NewTask::new("ä \"quoted\" `kind`")
        .payload(payload.clone())
        .unique_key("ключ'; --")
        .priority(i16::MIN);
    let id = submit(&*harness, [task]).await[0];
    let claimed = claim(&*harness, &worker, 1).await;
    assert_eq!(ids(&claimed), [id]);
    assert_eq!((&claimed[0].payload, claimed[0].priority), (&payload, i16::MIN));
    assert_eq!(claimed[0].unique_key.as_deref(), Some("ключ'; --"));
}
