//! The cases of the task suite, by what they are about, and what they have in common.

pub(super) mod check;
pub(super) mod claim;
pub(super) mod create;
pub(super) mod inspect;
pub(super) mod legal;
pub(super) mod limits;
pub(super) mod order;
pub(super) mod settle;
pub(super) mod workers;

use std::time::Duration;

use super::task_harness::{TaskHarness, TaskTransaction as _};
use crate::claim::Timestamp;
use crate::tasks::{
    Claim, Member, NewTask, Settled, Task, TaskEventKind, TaskId, TaskStatus, TaskToken, WorkerId,
};

pub use legal::legal_history;

/// A lease that no case outlives.
const LONG: Duration = Duration::from_secs(600);
/// A lease that a case lets pass.
const SHORT: Duration = Duration::from_millis(400);
/// What is left of it.
const LAPSE: Duration = Duration::from_millis(50);
/// A wait for what a case does not wait for.
const HOUR: Duration = Duration::from_secs(3_600);

fn member(kinds: &[&str], lease: Duration) -> Member {
    let kinds = kinds.iter().map(|kind| (*kind).to_owned()).collect();
    Member { worker: WorkerId::generate(), name: "worker".to_owned(), kinds, lease }
}

/// A registered worker that takes these kinds.
async fn join<H: TaskHarness>(harness: &H, kinds: &[&str], lease: Duration) -> Member {
    let member = member(kinds, lease);
    harness.store().join(&member).await.unwrap();
    member
}

/// Submits tasks, each in a transaction of its own: the later ones are created later.
async fn submit<H: TaskHarness>(harness: &H, tasks: impl IntoIterator<Item = NewTask>) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for task in tasks {
        let mut transaction = harness.begin().await;
        ids.push(transaction.submit(task).await.unwrap().id());
        transaction.commit().await.unwrap();
    }
    ids
}

async fn claim<H: TaskHarness>(harness: &H, member: &Member, limit: u32) -> Vec<Task> {
    let claim = Claim { worker: member.worker, kinds: member.kinds.clone(), limit };
    harness.store().claim(&claim).await.unwrap()
}

async fn claim_one<H: TaskHarness>(harness: &H, member: &Member) -> TaskToken {
    let tasks = claim(harness, member, 1).await;
    tasks.first().and_then(Task::token).expect("a task that is due is claimed")
}

fn ids(tasks: &[Task]) -> Vec<TaskId> {
    tasks.iter().map(|task| task.id).collect()
}

async fn get<H: TaskHarness>(harness: &H, task: TaskId) -> Task {
    harness.inspect().get(task).await.unwrap().expect("the task is there").0
}

async fn status<H: TaskHarness>(harness: &H, task: TaskId) -> TaskStatus {
    get(harness, task).await.status
}

/// What happened to a task; panics if that cannot be.
async fn history<H: TaskHarness>(harness: &H, task: TaskId) -> Vec<TaskEventKind> {
    let (task, events) = harness.inspect().get(task).await.unwrap().expect("the task is there");
    legal_history(&task, &events).unwrap();
    events.iter().map(|event| event.kind).collect()
}

/// How many entries of a kind there are, due and not.
async fn entries<H: TaskHarness>(harness: &H, kind: &str) -> (u64, u64) {
    let stats = harness.inspect().stats().await.unwrap();
    let found = stats.entries.iter().find(|entry| entry.kind == kind);
    found.map_or((0, 0), |entry| (entry.due, entry.later))
}

fn later(moment: Timestamp, wait: Duration) -> Timestamp {
    Timestamp::from_micros(moment.as_micros() + i64::try_from(wait.as_micros()).unwrap())
}

/// What the store's clock shows, about.
async fn now<H: TaskHarness>(harness: &H) -> Timestamp {
    let id = submit(harness, [NewTask::new("clock")]).await[0];
    get(harness, id).await.created_at
}

async fn complete<H: TaskHarness>(harness: &H, token: TaskToken) -> Settled {
    harness.store().complete(&[token]).await.unwrap()[0]
}
