//! What an operator sees of tasks, and does to them. Every query is bounded.

use std::fmt;

use async_trait::async_trait;

use super::history::TaskEvent;
use super::task::{Settled, Task, TaskId, TaskStatus};
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::outbox::WorkerId;

/// Nothing is counted further than this.
pub const COUNT_MAX: u64 = 100_000;
/// The most tasks of a list, and events of a history, that one call answers.
pub const LIST_MAX: u32 = 1_000;

/// Which tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Of this status.
    pub status: TaskStatus,
    /// Of this kind; none: of all.
    pub kind: Option<String>,
    /// Behind this one, as listed before.
    pub after: Option<(String, TaskId)>,
    /// At most so many; no more than [`LIST_MAX`] in any case.
    pub limit: u32,
}

impl Listing {
    /// The first tasks of this status.
    pub fn of(status: TaskStatus) -> Self {
        Self { status, kind: None, after: None, limit: 100 }
    }

    /// Of this kind only.
    #[must_use]
    pub fn kind(mut self, kind: impl Into<String>) -> Self {
        self.kind = Some(kind.into());
        self
    }

    /// Those behind `task`, the last one of the page before.
    #[must_use]
    pub fn after(mut self, task: &Task) -> Self {
        self.after = Some((task.kind.clone(), task.id));
        self
    }

    /// At most so many.
    #[must_use]
    pub fn limit(mut self, limit: u32) -> Self {
        self.limit = limit;
        self
    }
}

/// How many tasks of a kind are of a status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskCount {
    /// Of this kind.
    pub kind: String,
    /// Of this status.
    pub status: TaskStatus,
    /// So many, or [`COUNT_MAX`] if there are more.
    pub tasks: u64,
}

/// The entries of a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryCount {
    /// Of this kind.
    pub kind: String,
    /// Due: so many, or [`COUNT_MAX`] if there are more.
    pub due: u64,
    /// Not due yet.
    pub later: u64,
    /// A live worker takes tasks of this kind. If none does, its entries pile up unread.
    pub is_taken: bool,
}

/// A registered worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerInfo {
    /// What it is known by.
    pub worker: WorkerId,
    /// What people call it.
    pub name: String,
    /// The kinds it takes.
    pub kinds: Vec<String>,
    /// When it joined.
    pub started_at: Timestamp,
    /// Until when it is taken to be alive.
    pub lease_until: Timestamp,
    /// That is still to come.
    pub is_alive: bool,
}

/// How tasks stand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TaskStats {
    /// By kind and status; none where there is no task.
    pub tasks: Vec<TaskCount>,
    /// By kind; none where there is no entry.
    pub entries: Vec<EntryCount>,
    /// Since when the oldest entry has been due.
    pub oldest_due: Option<Timestamp>,
    /// Lowest id first.
    pub workers: Vec<WorkerInfo>,
}

impl TaskStats {
    /// The kinds whose entries no live worker takes.
    pub fn unread(&self) -> impl Iterator<Item = &EntryCount> {
        self.entries.iter().filter(|entry| !entry.is_taken && entry.due > 0)
    }

    /// How many tasks of this kind and status there are.
    pub fn count(&self, kind: &str, status: TaskStatus) -> u64 {
        let found = self.tasks.iter().find(|count| count.kind == kind && count.status == status);
        found.map_or(0, |count| count.tasks)
    }
}

/// A kind of which only so many tasks run at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KindLimit {
    /// Of this kind.
    pub kind: String,
    /// No more than these.
    pub most: u32,
}

/// What an operator sees, and does.
#[async_trait]
pub trait Inspect: fmt::Debug + Send + Sync {
    /// What the store's clock says: ages are counted from it, and what is old is decided by it.
    async fn now(&self) -> Result<Timestamp, StoreError>;

    /// Tasks of a status, by kind and then by id.
    async fn list(&self, listing: &Listing) -> Result<Vec<Task>, StoreError>;

    /// One task, and what happened to it from the beginning, up to [`LIST_MAX`] events.
    async fn get(&self, task: TaskId) -> Result<Option<(Task, Vec<TaskEvent>)>, StoreError>;

    /// How tasks stand.
    async fn stats(&self) -> Result<TaskStats, StoreError>;

    /// Calls a live task off, whoever has it: its worker's settlement is stale, and its handler is told.
    async fn cancel(&self, task: TaskId, by: &str) -> Result<Settled, StoreError>;

    /// Tries a task that failed or was cancelled again, at once. It has one attempt more than it has used, or what was left.
    ///
    /// # Errors
    /// `Rejected` if another live task has taken its unique key.
    async fn retry(&self, task: TaskId, by: &str) -> Result<Settled, StoreError>;

    /// Lets no more than `most` tasks of a kind run at a time, in all workers together; none: as many as there are workers for. What runs already goes on.
    async fn set_limit(&self, kind: &str, most: Option<u32>) -> Result<(), StoreError>;

    /// The kinds that are limited.
    async fn limits(&self) -> Result<Vec<KindLimit>, StoreError>;

    /// Deletes tasks that ended before then, and their events, up to `limit` of them; how many. Called until it says 0, it deletes all but those that were created long before others that
    /// ended later.
    async fn purge(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError>;
}
