//! Who is alive, and what becomes of the tasks of those who are not.

use std::sync::Arc;

use super::{
    LAPSE, LONG, SHORT, claim, claim_one, complete, entries, get, history, ids, join, member, status, submit,
};
use crate::tasks::{NewTask, Reaped, Settled, TaskEventKind, TaskStatus};
use crate::testkit::task_harness::{Damage, TaskHarness};

pub(in crate::testkit) async fn tasks_of_a_lost_worker_are_returned<H: TaskHarness>(harness: Arc<H>) {
    let (lost, other) = (join(&*harness, &["a"], SHORT).await, join(&*harness, &["a"], LONG).await);
    let tasks = submit(&*harness, (0..5).map(|_| NewTask::new("a"))).await;
    let claimed = claim(&*harness, &lost, 5).await;
    assert_eq!(harness.store().reap(100).await.unwrap(), Reaped::default(), "it is alive");
    harness.pass(SHORT + LAPSE).await;
    assert_eq!(harness.store().reap(3).await.unwrap(), Reaped { returned: 3, failed: 0 }, "in batches");
    assert_eq!(harness.store().reap(100).await.unwrap(), Reaped { returned: 2, failed: 0 });
    assert_eq!(harness.store().reap(100).await.unwrap(), Reaped::default());
    let again = claim(&*harness, &other, 10).await;
    let mut taken = ids(&again);
    taken.sort_unstable();
    assert_eq!(taken, tasks);
    assert!(again.iter().all(|task| task.attempt == 2), "the lost attempt counts");
    for task in &claimed {
        assert_eq!(complete(&*harness, task.token().unwrap()).await, Settled::Stale, "its result is late");
        assert_eq!(status(&*harness, task.id).await, TaskStatus::Running);
        history(&*harness, task.id).await;
    }
    let stats = harness.inspect().stats().await.unwrap();
    assert_eq!(
        stats.workers.iter().map(|worker| worker.worker).collect::<Vec<_>>(),
        [other.worker],
        "the lost one is forgotten"
    );
}

pub(in crate::testkit) async fn tasks_of_an_unknown_worker_are_returned<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let id = submit(&*harness, [NewTask::new("a")]).await[0];
    claim_one(&*harness, &worker).await;
    harness.damage(Damage::LoseWorker(worker.worker)).await;
    assert_eq!(harness.store().reap(100).await.unwrap(), Reaped { returned: 1, failed: 0 });
    assert_eq!(status(&*harness, id).await, TaskStatus::Ready);
    assert_eq!(entries(&*harness, "a").await, (1, 0));
}

pub(in crate::testkit) async fn a_worker_that_is_alive_keeps_its_tasks<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], SHORT * 2).await;
    submit(&*harness, [NewTask::new("a")]).await;
    let token = claim_one(&*harness, &worker).await;
    for _ in 0..4 {
        harness.pass(SHORT).await;
        assert!(harness.store().beat(&worker).await.unwrap());
        assert_eq!(harness.store().reap(100).await.unwrap(), Reaped::default());
    }
    assert_eq!(complete(&*harness, token).await, Settled::Applied, "one beat keeps all its tasks");
}

pub(in crate::testkit) async fn a_lost_worker_stays_lost<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], SHORT).await;
    submit(&*harness, [NewTask::new("a")]).await;
    harness.pass(SHORT + LAPSE).await;
    assert!(!harness.store().beat(&worker).await.unwrap(), "it is too late");
    assert!(claim(&*harness, &worker, 1).await.is_empty(), "who is lost claims nothing");
    harness.store().reap(10).await.unwrap();
    assert!(!harness.store().beat(&worker).await.unwrap());
    assert!(!harness.store().beat(&member(&["a"], LONG)).await.unwrap(), "and who never joined is not there");
    let anew = join(&*harness, &["a"], LONG).await;
    assert_eq!(claim(&*harness, &anew, 1).await.len(), 1);
}

pub(in crate::testkit) async fn a_worker_that_leaves_returns_what_it_has<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let tasks = submit(&*harness, (0..3).map(|_| NewTask::new("a"))).await;
    let claimed = claim(&*harness, &worker, 3).await;
    complete(&*harness, claimed[0].token().unwrap()).await;
    assert_eq!(harness.store().leave(worker.worker).await.unwrap(), Reaped { returned: 2, failed: 0 });
    assert_eq!(entries(&*harness, "a").await, (2, 0), "at once, not when its lease ends");
    assert_eq!(status(&*harness, tasks[0]).await, TaskStatus::Completed);
    assert!(claim(&*harness, &worker, 3).await.is_empty(), "who has left claims nothing");
    assert!(harness.inspect().stats().await.unwrap().workers.is_empty());
}

pub(in crate::testkit) async fn a_task_that_kills_its_workers_fails<H: TaskHarness>(harness: Arc<H>) {
    let id = submit(&*harness, [NewTask::new("a").attempts_max(2)]).await[0];
    for expected in [Reaped { returned: 1, failed: 0 }, Reaped { returned: 0, failed: 1 }] {
        let worker = join(&*harness, &["a"], LONG).await;
        claim_one(&*harness, &worker).await;
        harness.damage(Damage::LoseWorker(worker.worker)).await;
        assert_eq!(harness.store().reap(10).await.unwrap(), expected);
    }
    let task = get(&*harness, id).await;
    assert_eq!(task.status, TaskStatus::Failed);
    assert_eq!(task.error.as_deref(), Some("its worker was lost"));
    assert_eq!(history(&*harness, id).await.last(), Some(&TaskEventKind::TaskFailed));
}

pub(in crate::testkit) async fn two_of_one_name_are_two<H: TaskHarness>(harness: Arc<H>) {
    let (one, two) = (join(&*harness, &["a"], LONG).await, join(&*harness, &["a"], LONG).await);
    assert_eq!(one.name, two.name);
    assert_ne!(one.worker, two.worker);
    submit(&*harness, [NewTask::new("a")]).await;
    let token = claim_one(&*harness, &one).await;
    let theirs = crate::tasks::TaskToken { owner: two.worker, ..token };
    assert_eq!(complete(&*harness, theirs).await, Settled::Stale);
    assert_eq!(harness.inspect().stats().await.unwrap().workers.len(), 2);
    harness.store().leave(two.worker).await.unwrap();
    assert_eq!(complete(&*harness, token).await, Settled::Applied);
}
