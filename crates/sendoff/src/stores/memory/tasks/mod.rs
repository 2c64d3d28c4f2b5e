//! Tasks in memory: the reference that the SQL stores are compared with, and enough for tests.

mod inspect;
mod tables;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;

use self::tables::{Tables, WorkerRow};
use super::{MemoryDatabase, MemoryOutbox, after};
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::outbox::WorkerId;
use crate::tasks::transition::{Change, When};
use crate::tasks::{
    BATCH_MAX, CheckPoint, Checked, Claim, Created, Member, NewTask, Publish, Reaped, Settled, Store, Task,
    TaskEventKind, TaskId, TaskStatus, TaskToken, kept,
};

/// Tasks in memory, with a clock of their own.
#[derive(Debug, Clone, Default)]
pub struct MemoryTasks {
    database: MemoryDatabase,
    tables: Arc<Mutex<Tables>>,
}

impl MemoryTasks {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes every event of a task to this outbox as well.
    #[must_use]
    pub fn publish_events(self, publish: Publish, outbox: MemoryOutbox) -> Self {
        self.tables().publish = Some((publish, outbox));
        self
    }

    /// Moves the clock forward.
    pub fn advance(&self, by: Duration) {
        self.database.advance(by);
    }

    /// What the clock shows.
    pub fn now(&self) -> Timestamp {
        self.database.lock().now()
    }

    /// A host's transaction: its tasks are there when it commits, and never if it does not.
    pub fn begin(&self) -> MemoryTaskTransaction {
        MemoryTaskTransaction { tasks: self.clone(), created: Vec::new(), ready: Vec::new() }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self, token: &TaskToken, change: &Change) -> Result<Settled, StoreError> {
        let now = self.now();
        let step = self.tables().change(token.task, Some(token), change, now)?;
        Ok(if step.is_some() { Settled::Applied } else { Settled::Stale })
    }

    /// Breaks the tie between a task and its entry, for tests of the check: deletes the entry.
    #[doc(hidden)]
    pub fn lose_entry(&self, task: TaskId) {
        self.tables().entries.remove(&task);
    }

    /// The same, the other way round: makes an entry whatever the task.
    #[doc(hidden)]
    pub fn make_entry(&self, task: TaskId, kind: &str) {
        let now = self.now();
        self.tables().entries.insert(task, (0, now, kind.to_owned()));
    }

    /// Deletes a registration, for tests of what becomes of an unknown worker's tasks.
    #[doc(hidden)]
    pub fn lose_worker(&self, worker: WorkerId) {
        self.tables().workers.remove(&worker);
    }
}

/// A host's transaction on [`MemoryTasks`].
#[derive(Debug)]
pub struct MemoryTaskTransaction {
    tasks: MemoryTasks,
    created: Vec<Task>,
    ready: Vec<TaskId>,
}

impl MemoryTaskTransaction {
    /// Writes a task that nobody may claim until it is marked ready.
    ///
    /// # Errors
    /// `Rejected` for a task beyond the limits.
    pub fn create(&mut self, task: &NewTask) -> Result<Created, StoreError> {
        task.check()?;
        if let Some(key) = &task.unique_key {
            let is_it = |task: &&Task| task.status.is_live() && task.unique_key.as_ref() == Some(key);
            let mine = self.created.iter().find(is_it).map(|task| task.id);
            let taken = mine.or_else(|| self.tasks.tables().live_key(key));
            if let Some(taken) = taken {
                return Ok(Created::Exists(taken));
            }
        }
        let now = self.tasks.now();
        let task = tables::new_task(task, now);
        let id = task.id;
        self.created.push(task);
        Ok(Created::New(id))
    }

    /// Lets a task be claimed, once this is committed.
    pub fn mark_ready(&mut self, task: TaskId) -> Settled {
        let is_new = |task: &Task| task.status == TaskStatus::NotStarted;
        let mine = self.created.iter().find(|mine| mine.id == task).map(is_new);
        let known = mine.or_else(|| self.tasks.tables().tasks.get(&task).map(is_new));
        if known != Some(true) || self.ready.contains(&task) {
            return Settled::Stale;
        }
        self.ready.push(task);
        Settled::Applied
    }

    /// Both at once.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn submit(&mut self, task: &NewTask) -> Result<Created, StoreError> {
        let created = self.create(task)?;
        if let Created::New(id) = created {
            self.mark_ready(id);
        }
        Ok(created)
    }

    /// Makes its tasks visible.
    ///
    /// # Errors
    /// `Rejected` if a unique key has been taken meanwhile; then nothing is visible.
    pub fn commit(self) -> Result<(), StoreError> {
        let now = self.tasks.now();
        let mut tables = self.tasks.tables();
        for key in self.created.iter().filter_map(|task| task.unique_key.as_ref()) {
            if tables.live_key(key).is_some() {
                return Err(StoreError::rejected("create task", "unique key", "another task has taken it"));
            }
        }
        for task in self.created {
            let id = task.id;
            tables.tasks.insert(id, task);
            tables.tell(id, TaskEventKind::TaskCreated, None, now)?;
        }
        for id in self.ready {
            let Some(task) = tables.tasks.get_mut(&id).filter(|task| task.status == TaskStatus::NotStarted)
            else {
                continue;
            };
            task.status = TaskStatus::Ready;
            tables.enter(id);
            tables.tell(id, TaskEventKind::TaskReady, None, now)?;
        }
        Ok(())
    }
}

#[async_trait]
impl Store for MemoryTasks {
    async fn join(&self, member: &Member) -> Result<(), StoreError> {
        let now = self.now();
        let row = WorkerRow {
            name: member.name.clone(),
            kinds: member.kinds.clone(),
            started_at: now,
            lease_until: after(now, member.lease),
        };
        let mut tables = self.tables();
        if tables.workers.contains_key(&member.worker) {
            return Err(StoreError::rejected("join", member.worker.to_string(), "it is registered already"));
        }
        tables.workers.insert(member.worker, row);
        Ok(())
    }

    async fn beat(&self, member: &Member) -> Result<bool, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let Some(row) = tables.workers.get_mut(&member.worker).filter(|row| row.lease_until > now) else {
            return Ok(false);
        };
        row.lease_until = after(now, member.lease);
        Ok(true)
    }

    async fn leave(&self, worker: WorkerId) -> Result<Reaped, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        tables.workers.remove(&worker);
        let owned = tables.running(|task| task.owner == Some(worker));
        tables.give_back(&owned, "its worker stopped before it was done", now)
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<Task>, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        if tables.workers.get(&claim.worker).is_none_or(|row| row.lease_until <= now) {
            return Ok(Vec::new());
        }
        tables.claim(claim, claim.limit.min(BATCH_MAX) as usize, now)
    }

    async fn complete(&self, tokens: &[TaskToken]) -> Result<Vec<Settled>, StoreError> {
        tokens.iter().map(|token| self.settle(token, &Change::Complete)).collect()
    }

    async fn fail(&self, token: &TaskToken, error: &str) -> Result<Settled, StoreError> {
        self.settle(token, &Change::Fail { error: error.to_owned() })
    }

    async fn schedule_retry(
        &self,
        token: &TaskToken,
        when: When,
        error: &str,
    ) -> Result<Settled, StoreError> {
        self.settle(token, &Change::Retry { when, error: error.to_owned() })
    }

    async fn extend(&self, token: &TaskToken, time: Duration) -> Result<Settled, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let Some(task) = tables.under(token) else { return Ok(Settled::Stale) };
        task.lease_until = Some(after(now, time));
        tables.tell(token.task, TaskEventKind::TaskExtended, None, now)?;
        Ok(Settled::Applied)
    }

    async fn report(&self, token: &TaskToken, progress: &str) -> Result<Settled, StoreError> {
        let mut tables = self.tables();
        let Some(task) = tables.under(token) else { return Ok(Settled::Stale) };
        task.progress = Some(kept(progress));
        Ok(Settled::Applied)
    }

    async fn held(&self, tokens: &[TaskToken]) -> Result<HashSet<TaskToken>, StoreError> {
        let mut tables = self.tables();
        Ok(tokens.iter().filter(|token| tables.under(token).is_some()).copied().collect())
    }

    async fn owned(&self, worker: WorkerId) -> Result<Vec<TaskToken>, StoreError> {
        let tables = self.tables();
        let owned = tables.running(|task| task.owner == Some(worker));
        Ok(owned.iter().filter_map(|id| tables.tasks.get(id)?.token()).collect())
    }

    async fn reap(&self, limit: u32) -> Result<Reaped, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let alive: HashSet<WorkerId> = tables
            .workers
            .iter()
            .filter(|(_, row)| row.lease_until > now)
            .map(|(worker, _)| *worker)
            .collect();
        let mut lost = tables.running(|task| task.owner.is_none_or(|owner| !alive.contains(&owner)));
        let mut overdue = tables.running(|task| task.lease_until.is_some_and(|until| until <= now));
        lost.truncate(limit as usize);
        overdue.retain(|task| !lost.contains(task));
        overdue.truncate(limit as usize - lost.len());
        let mut reaped = tables.give_back(&lost, "its worker was lost", now)?;
        let more = tables.give_back(&overdue, "its time ran out", now)?;
        reaped.returned += more.returned;
        reaped.failed += more.failed;
        let busy: HashSet<WorkerId> = tables
            .tasks
            .values()
            .filter(|task| task.status == TaskStatus::Running)
            .filter_map(|task| task.owner)
            .collect();
        tables.workers.retain(|worker, row| row.lease_until > now || busy.contains(worker));
        Ok(reaped)
    }

    /// All at once: nothing is read page by page here.
    async fn check(&self, _from: CheckPoint, _limit: u32) -> Result<Checked, StoreError> {
        let mut tables = self.tables();
        let mut checked = Checked::default();
        for id in tables.entries.keys() {
            match tables.tasks.get(id) {
                None => checked.orphaned.push(*id),
                Some(task) if task.status != TaskStatus::Ready => checked.left_over.push(*id),
                Some(_) => {}
            }
        }
        let is_missing =
            |task: &&Task| task.status == TaskStatus::Ready && !tables.entries.contains_key(&task.id);
        checked.unentered = tables.tasks.values().filter(is_missing).map(|task| task.id).collect();
        for id in checked.orphaned.iter().chain(&checked.left_over) {
            tables.entries.remove(id);
        }
        for id in &checked.unentered {
            tables.enter(*id);
        }
        Ok(checked)
    }
}
