//! What the task suite needs of a store.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use crate::error::StoreError;
use crate::tasks::{Created, Inspect, NewTask, Settled, Store, TaskId, WorkerId};

/// What is broken, to see it mended.
#[derive(Debug, Clone)]
pub enum Damage {
    /// The entry of this task is deleted.
    LoseEntry(TaskId),
    /// An entry is made for this task, whatever stands there.
    MakeEntry(TaskId, String),
    /// The registration of this worker is deleted.
    LoseWorker(WorkerId),
}

/// What the task suite needs of a store. Each case gets a harness of its own, without any tasks.
pub trait TaskHarness: Send + Sync + 'static {
    /// How the host writes.
    type Transaction: TaskTransaction;

    /// Tasks as workers see them.
    fn store(&self) -> Arc<dyn Store>;

    /// Tasks as operators see them.
    fn inspect(&self) -> Arc<dyn Inspect>;

    /// A transaction of the host.
    fn begin(&self) -> impl Future<Output = Self::Transaction> + Send;

    /// Lets so much time pass by the store's clock: a store with a clock of its own moves it, others wait.
    fn pass(&self, time: Duration) -> impl Future<Output = ()> + Send;

    /// Breaks something, by plain statements.
    fn damage(&self, damage: Damage) -> impl Future<Output = ()> + Send;

    /// Locks the entry of this task, as another claim would, and runs `then`; none: this store locks no rows.
    fn while_locked<Then, Answer>(
        &self,
        task: TaskId,
        then: Then,
    ) -> impl Future<Output = Option<Answer::Output>> + Send
    where
        Then: FnOnce() -> Answer + Send,
        Answer: Future + Send,
        Answer::Output: Send;

    /// Over so many tasks a race goes.
    fn race_tasks(&self) -> usize {
        400
    }
}

/// A transaction of the host, with its tasks in it. Dropped, it is rolled back.
pub trait TaskTransaction: Send + 'static {
    /// Writes a task.
    fn create(&mut self, task: NewTask) -> impl Future<Output = Result<Created, StoreError>> + Send;

    /// Lets it be claimed.
    fn mark_ready(&mut self, task: TaskId) -> impl Future<Output = Result<Settled, StoreError>> + Send;

    /// Both at once.
    fn submit(&mut self, task: NewTask) -> impl Future<Output = Result<Created, StoreError>> + Send;

    /// Commits.
    fn commit(self) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Rolls back.
    fn rollback(self) -> impl Future<Output = ()> + Send;
}
