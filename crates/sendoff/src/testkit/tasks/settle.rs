//! Settlements: fenced, told, answered.

use std::sync::Arc;
use std::time::Duration;

use super::{
    HOUR, LAPSE, LONG, SHORT, claim, claim_one, complete, entries, get, history, ids, join, status, submit,
};
use crate::tasks::{NewTask, Settled, TaskEventKind, TaskId, TaskStatus, TaskToken, When, WorkerId};
use crate::testkit::task_harness::TaskHarness;

pub(in crate::testkit) async fn a_settlement_needs_the_claim_that_stands<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let store = harness.store();
    let id = submit(&*harness, [NewTask::new("a")]).await[0];
    let first = claim_one(&*harness, &worker).await;
    store.schedule_retry(&first, When::In(Duration::ZERO), "again").await.unwrap();
    let second = claim_one(&*harness, &worker).await;
    assert_eq!((second.task, second.attempt), (id, 2));
    let stranger = TaskToken { owner: WorkerId::generate(), ..second };
    let nobody = TaskToken { task: TaskId::generate(), ..second };
    let before = harness.inspect().get(id).await.unwrap();
    for stale in [first, stranger, nobody] {
        assert_eq!(store.complete(&[stale]).await.unwrap(), [Settled::Stale]);
        assert_eq!(store.fail(&stale, "no").await.unwrap(), Settled::Stale);
        let retried = store.schedule_retry(&stale, When::In(HOUR), "no").await.unwrap();
        assert_eq!(retried, Settled::Stale);
        assert_eq!(store.extend(&stale, HOUR).await.unwrap(), Settled::Stale);
        assert_eq!(store.report(&stale, "half").await.unwrap(), Settled::Stale);
    }
    assert_eq!(harness.inspect().get(id).await.unwrap(), before, "a stale settlement changes nothing");
    let held = store.held(&[first, second, stranger]).await.unwrap();
    assert_eq!(held.into_iter().collect::<Vec<_>>(), [second]);
    assert_eq!(store.owned(worker.worker).await.unwrap(), [second]);
    assert_eq!(complete(&*harness, second).await, Settled::Applied);
    assert_eq!(complete(&*harness, second).await, Settled::Stale, "it is settled");
    assert_eq!(store.fail(&second, "no").await.unwrap(), Settled::Stale);
    assert!(store.held(&[second]).await.unwrap().is_empty());
    let task = get(&*harness, id).await;
    assert_eq!((task.status, task.lease_until), (TaskStatus::Completed, None));
    assert!(task.finished_at.is_some());
    history(&*harness, id).await;
}

pub(in crate::testkit) async fn many_are_completed_at_once_and_each_is_answered<H: TaskHarness>(
    harness: Arc<H>,
) {
    let worker = join(&*harness, &["a"], LONG).await;
    submit(&*harness, (0..20).map(|_| NewTask::new("a"))).await;
    let claimed = claim(&*harness, &worker, 100).await;
    let mut tokens: Vec<TaskToken> = claimed.iter().filter_map(crate::tasks::Task::token).collect();
    assert_eq!(tokens.len(), 20);
    tokens[3].attempt = 7;
    tokens[5].owner = WorkerId::generate();
    tokens.push(tokens[0]);
    let answers = harness.store().complete(&tokens).await.unwrap();
    for (number, answer) in answers.iter().enumerate() {
        let expected = if [3, 5, 20].contains(&number) { Settled::Stale } else { Settled::Applied };
        assert_eq!(*answer, expected, "number {number}");
    }
    assert!(harness.store().complete(&[]).await.unwrap().is_empty());
    for (number, task) in claimed.iter().enumerate() {
        let expected = if [3, 5].contains(&number) { TaskStatus::Running } else { TaskStatus::Completed };
        assert_eq!(status(&*harness, task.id).await, expected, "number {number}");
        history(&*harness, task.id).await;
    }
}

/// A worker that was taken for lost may get its task again, and end both attempts together.
pub(in crate::testkit) async fn of_two_claims_of_one_task_the_one_that_stands_is_completed<H: TaskHarness>(
    harness: Arc<H>,
) {
    let worker = join(&*harness, &["a"], LONG).await;
    let id = submit(&*harness, [NewTask::new("a")]).await[0];
    let first = claim_one(&*harness, &worker).await;
    harness.store().schedule_retry(&first, When::In(Duration::ZERO), "again").await.unwrap();
    let second = claim_one(&*harness, &worker).await;
    let answers = harness.store().complete(&[first, second, first, second]).await.unwrap();
    assert_eq!(answers, [Settled::Stale, Settled::Applied, Settled::Stale, Settled::Stale]);
    assert_eq!(status(&*harness, id).await, TaskStatus::Completed);
    history(&*harness, id).await;
}

pub(in crate::testkit) async fn a_failure_is_final<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let id = submit(&*harness, [NewTask::new("a")]).await[0];
    let token = claim_one(&*harness, &worker).await;
    assert_eq!(harness.store().fail(&token, "it's\0 bad").await.unwrap(), Settled::Applied);
    let task = get(&*harness, id).await;
    assert_eq!((task.status, task.error.as_deref()), (TaskStatus::Failed, Some("it's bad")));
    assert!(claim(&*harness, &worker, 10).await.is_empty());
    assert_eq!(history(&*harness, id).await.last(), Some(&TaskEventKind::TaskFailed));
}

pub(in crate::testkit) async fn attempts_run_out<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let id = submit(&*harness, [NewTask::new("a").attempts_max(3)]).await[0];
    for attempt in 1..=3 {
        let token = claim_one(&*harness, &worker).await;
        assert_eq!(token.attempt, attempt);
        let error = format!("failure {attempt}");
        let answer = harness.store().schedule_retry(&token, When::In(Duration::ZERO), &error).await.unwrap();
        assert_eq!(answer, Settled::Applied);
    }
    assert!(claim(&*harness, &worker, 10).await.is_empty());
    let task = get(&*harness, id).await;
    assert_eq!((task.status, task.error.as_deref()), (TaskStatus::Failed, Some("failure 3")));
    assert_eq!(history(&*harness, id).await.last(), Some(&TaskEventKind::TaskFailed));
    assert_eq!(entries(&*harness, "a").await, (0, 0));
}

pub(in crate::testkit) async fn a_task_is_cancelled_wherever_it_stands<H: TaskHarness>(harness: Arc<H>) {
    use crate::testkit::task_harness::TaskTransaction as _;
    let worker = join(&*harness, &["a"], LONG).await;
    let inspect = harness.inspect();
    let mut transaction = harness.begin().await;
    let not_started = transaction.create(NewTask::new("a")).await.unwrap().id();
    transaction.commit().await.unwrap();
    let running = submit(&*harness, [NewTask::new("a")]).await[0];
    let token = claim_one(&*harness, &worker).await;
    let ready = submit(&*harness, [NewTask::new("a")]).await[0];
    for id in [not_started, ready, running] {
        assert_eq!(inspect.cancel(id, "an operator").await.unwrap(), Settled::Applied);
        assert_eq!(status(&*harness, id).await, TaskStatus::Cancelled);
        assert_eq!(inspect.cancel(id, "an operator").await.unwrap(), Settled::Stale, "it has ended");
        let (_, events) = inspect.get(id).await.unwrap().unwrap();
        assert_eq!(events.last().unwrap().detail.as_deref(), Some("an operator"));
        history(&*harness, id).await;
    }
    assert!(harness.store().held(&[token]).await.unwrap().is_empty(), "its worker can see it");
    assert_eq!(complete(&*harness, token).await, Settled::Stale, "what was cancelled is not completed");
    assert_eq!(entries(&*harness, "a").await, (0, 0));
    assert!(claim(&*harness, &worker, 10).await.is_empty());
    assert_eq!(inspect.cancel(TaskId::generate(), "x").await.unwrap(), Settled::Stale, "there is none");
}

pub(in crate::testkit) async fn an_attempt_has_a_time_limit_that_can_be_moved<H: TaskHarness>(
    harness: Arc<H>,
) {
    let worker = join(&*harness, &["a"], LONG).await;
    let tasks = submit(&*harness, (0..2).map(|_| NewTask::new("a").run_time(SHORT))).await;
    let claimed = claim(&*harness, &worker, 2).await;
    assert_eq!(ids(&claimed), tasks);
    let kept = claimed[0].token().unwrap();
    assert_eq!(harness.store().extend(&kept, LONG).await.unwrap(), Settled::Applied);
    harness.pass(SHORT + LAPSE).await;
    let reaped = harness.store().reap(100).await.unwrap();
    assert_eq!((reaped.returned, reaped.failed), (1, 0), "only the one whose time ran out");
    let expected = [
        TaskEventKind::TaskCreated,
        TaskEventKind::TaskReady,
        TaskEventKind::TaskClaimed,
        TaskEventKind::TaskExtended,
    ];
    assert_eq!(history(&*harness, tasks[0]).await, expected);
    assert_eq!(history(&*harness, tasks[1]).await.last(), Some(&TaskEventKind::TaskReturned));
    assert_eq!(complete(&*harness, claimed[1].token().unwrap()).await, Settled::Stale);
    assert_eq!(complete(&*harness, kept).await, Settled::Applied);
}

pub(in crate::testkit) async fn progress_is_seen_and_only_its_owners<H: TaskHarness>(harness: Arc<H>) {
    let worker = join(&*harness, &["a"], LONG).await;
    let id = submit(&*harness, [NewTask::new("a")]).await[0];
    let token = claim_one(&*harness, &worker).await;
    for progress in ["40 %", "80 %", "80 %"] {
        assert_eq!(harness.store().report(&token, progress).await.unwrap(), Settled::Applied);
        assert_eq!(get(&*harness, id).await.progress.as_deref(), Some(progress));
    }
    complete(&*harness, token).await;
    assert_eq!(harness.store().report(&token, "90 %").await.unwrap(), Settled::Stale);
    assert_eq!(get(&*harness, id).await.progress.as_deref(), Some("80 %"));
}
