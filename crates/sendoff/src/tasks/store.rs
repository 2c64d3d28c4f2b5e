//! The contract between whoever runs tasks and where they are kept.

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

use super::task::{Settled, Task, TaskId, TaskToken};
use super::transition::When;
use crate::error::StoreError;
use crate::outbox::WorkerId;

/// The most tasks that one claim takes, and one settlement settles.
pub const BATCH_MAX: u32 = 1_000;
/// The most kinds that one worker takes.
pub const KINDS_MAX: usize = 1_000;

/// A worker as a store knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// What it is known by. Made anew for each start, and whenever a worker was taken for lost.
    pub worker: WorkerId,
    /// What people call it. A label: nothing depends on its being unique.
    pub name: String,
    /// The kinds of tasks it takes, for people to see which kinds nobody takes.
    pub kinds: Vec<String>,
    /// How long it is taken to be alive after each sign of life.
    pub lease: Duration,
}

/// What a worker asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who asks.
    pub worker: WorkerId,
    /// Of which kinds.
    pub kinds: Vec<String>,
    /// At most so many; no more than [`BATCH_MAX`] in any case.
    pub limit: u32,
}

/// What became of tasks whose workers were lost, or whose time ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reaped {
    /// Ready again.
    pub returned: u32,
    /// Their attempts had run out.
    pub failed: u32,
}

impl Reaped {
    /// All of them.
    pub fn total(self) -> u32 {
        self.returned + self.failed
    }
}

/// How far a check of tasks and entries has come. The default is the beginning.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckPoint {
    /// Behind this entry.
    pub(crate) entry: Option<TaskId>,
    /// All entries have been seen: behind this kind and task.
    pub(crate) ready: Option<(String, Option<TaskId>)>,
}

/// What a check found, and mended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Checked {
    /// Entries without a task: deleted.
    pub orphaned: Vec<TaskId>,
    /// Entries of tasks that are not ready: deleted.
    pub left_over: Vec<TaskId>,
    /// Ready tasks without an entry, which no claim would ever have found: entered again.
    pub unentered: Vec<TaskId>,
    /// Where to go on; none: everything has been looked at.
    pub next: Option<CheckPoint>,
}

/// Where tasks are kept: all that a runner needs.
///
/// # Contract
/// `testkit::task_suite` tests it, for every store.
/// 1. **Time is the store's.** A lease ends by its clock and no other.
/// 2. **One owner.** [`claim`](Self::claim) gives a task to one worker, with a higher attempt than ever before: its entry is gone, the task is running and its
///    event is written in one transaction, which is committed before the answer.
/// 3. **Fenced.** What a worker settles changes nothing unless its token is of the claim that stands; the answer says which.
/// 4. **Every change has its event**, in the same transaction.
/// 5. **In order.** Higher priority first, then what was due first, then what was created first. What is not due is not claimed, and costs a claim nothing.
/// 6. **Not blocking.** A claim steps over entries that another one has locked.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync {
    /// Registers a worker. Its id must be new.
    async fn join(&self, member: &Member) -> Result<(), StoreError>;

    /// A sign of life. False: it came too late, or the registration is gone; what the worker had may be another's by now, and it must join anew under a new id.
    async fn beat(&self, member: &Member) -> Result<bool, StoreError>;

    /// Takes a worker off the register. What it still had is returned, as if it had been lost.
    async fn leave(&self, worker: WorkerId) -> Result<Reaped, StoreError>;

    /// Claims tasks that are due. None for a worker that is not registered, or whose lease has ended.
    async fn claim(&self, claim: &Claim) -> Result<Vec<Task>, StoreError>;

    /// They are done. An answer for each, in their order.
    async fn complete(&self, tokens: &[TaskToken]) -> Result<Vec<Settled>, StoreError>;

    /// It is given up.
    async fn fail(&self, token: &TaskToken, error: &str) -> Result<Settled, StoreError>;

    /// The attempt failed: it is tried again, or given up if its attempts have run out.
    async fn schedule_retry(&self, token: &TaskToken, when: When, error: &str)
    -> Result<Settled, StoreError>;

    /// The attempt may take so much longer, counted from now.
    async fn extend(&self, token: &TaskToken, time: Duration) -> Result<Settled, StoreError>;

    /// How far it is, for people to read. Has no event.
    async fn report(&self, token: &TaskToken, progress: &str) -> Result<Settled, StoreError>;

    /// Which of these claims still stand. The others were cancelled, or are lost.
    async fn held(&self, tokens: &[TaskToken]) -> Result<HashSet<TaskToken>, StoreError>;

    /// The claims of a worker that stand, up to 500: for one that may not have got the answer to a claim.
    async fn owned(&self, worker: WorkerId) -> Result<Vec<TaskToken>, StoreError>;

    /// Returns up to `limit` tasks whose workers are lost or unknown, or whose time has run out, and forgets workers that have been lost and have nothing left.
    async fn reap(&self, limit: u32) -> Result<Reaped, StoreError>;

    /// Looks at the next entries and ready tasks, up to `limit` of them, and mends what does not belong together.
    async fn check(&self, from: CheckPoint, limit: u32) -> Result<Checked, StoreError>;
}
