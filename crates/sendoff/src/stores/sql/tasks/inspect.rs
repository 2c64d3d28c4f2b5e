//! What an operator asks of tasks in SQL.

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;

use super::settle::Want;
use super::tell::clock;
use super::{Arg, KEYS_PER_STATEMENT, SqlDatabase, SqlTasks, from_the_start, retry};
use crate::claim::Timestamp;
use crate::error::{StoreError, StoreErrorKind};
use crate::outbox::WorkerId;
use crate::tasks::transition::Change;
use crate::tasks::{
    COUNT_MAX, EntryCount, Inspect, KindLimit, LIST_MAX, Listing, Settled, Task, TaskCount, TaskEvent,
    TaskId, TaskStats, TaskStatus, WorkerInfo, check_kind,
};

/// The most kinds, limits and workers that are looked at.
const KINDS_SEEN_MAX: usize = 1_000;

/// So many of the oldest tasks of a kind are looked at by one purge.
const PURGE_WINDOW: u32 = 5_000;

impl<D: SqlDatabase> SqlTasks<D> {
    /// The first kind after this one that a task of this status has.
    pub(super) async fn next_kind(
        &self,
        status: TaskStatus,
        after: &str,
    ) -> Result<Option<String>, StoreError> {
        let args = [("status", Arg::from(status.word())), ("after", Arg::from(after))];
        let statement = self.templates.fill(include_str!("next_kind.sql"), &args)?;
        self.read("inspect", &statement).await?.into_iter().next().map(|mut row| row.text("kind")).transpose()
    }

    async fn kinds(&self, status: TaskStatus) -> Result<Vec<String>, StoreError> {
        let mut kinds: Vec<String> = Vec::new();
        while kinds.len() < KINDS_SEEN_MAX {
            let Some(kind) = self.next_kind(status, kinds.last().map_or("", String::as_str)).await? else {
                break;
            };
            kinds.push(kind);
        }
        Ok(kinds)
    }

    async fn count(&self, template: &'static str, args: Vec<(&'static str, Arg)>) -> Result<u64, StoreError> {
        let mut args = args;
        args.push(("limit", Arg::from(i64::try_from(COUNT_MAX).unwrap_or(i64::MAX))));
        let row = self.read("inspect", &self.templates.fill(template, &args)?).await?.into_iter().next();
        Ok(row.map_or(Ok(0), |mut row| row.int("count"))?.try_into().unwrap_or_default())
    }

    async fn entries(&self, taken: &HashSet<&str>) -> Result<Vec<EntryCount>, StoreError> {
        let mut counts: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for waiting in [0_i64, 1] {
            let mut after = String::new();
            for _ in 0..KINDS_SEEN_MAX {
                let args = [("waiting", Arg::from(waiting)), ("after", Arg::from(after.as_str()))];
                let next = self.templates.fill(include_str!("next_entry_kind.sql"), &args)?;
                let Some(mut row) = self.read("inspect", &next).await?.into_iter().next() else { break };
                after = row.text("kind")?;
                let args = vec![("waiting", Arg::from(waiting)), ("kind", Arg::from(after.as_str()))];
                let count = self.count(include_str!("count_entries.sql"), args).await?;
                counts.entry(after.clone()).or_default()[usize::from(waiting == 1)] = count;
            }
        }
        let entry = |(kind, [due, later]): (String, [u64; 2])| {
            let is_taken = taken.contains(kind.as_str());
            EntryCount { kind, due, later, is_taken }
        };
        Ok(counts.into_iter().map(entry).collect())
    }

    async fn workers(&self) -> Result<Vec<WorkerInfo>, StoreError> {
        let limit = u32::try_from(KINDS_SEEN_MAX).unwrap_or(u32::MAX);
        let statement = self.templates.fill(include_str!("workers.sql"), &[("limit", Arg::from(limit))])?;
        let mut workers = Vec::new();
        for mut row in self.read("inspect", &statement).await? {
            workers.push(WorkerInfo {
                worker: WorkerId(row.uuid("worker")?),
                name: row.text("name")?,
                kinds: row.text("kinds")?.lines().map(str::to_owned).collect(),
                started_at: row.moment("started_at")?,
                lease_until: row.moment("lease_until")?,
                is_alive: row.int("is_alive")? != 0,
            });
        }
        Ok(workers)
    }

    pub(super) async fn read_limits(&self) -> Result<Vec<KindLimit>, StoreError> {
        let limit = u32::try_from(KINDS_SEEN_MAX).unwrap_or(u32::MAX);
        let statement = self.templates.fill(include_str!("limits.sql"), &[("limit", Arg::from(limit))])?;
        let mut limits = Vec::new();
        for mut row in self.read("inspect", &statement).await? {
            limits.push(KindLimit { kind: row.text("kind")?, most: row.count("most")? });
        }
        Ok(limits)
    }

    async fn list_kind(
        &self,
        status: TaskStatus,
        kind: &str,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<Vec<Task>, StoreError> {
        let args = [
            ("status", Arg::from(status.word())),
            ("kind", Arg::from(kind)),
            ("after", self.task(from_the_start(after))),
            ("limit", Arg::from(limit)),
        ];
        let statement = self.templates.fill(include_str!("list.sql"), &args)?;
        self.read("list", &statement).await?.into_iter().map(|row| Ok(row.task()?.0)).collect()
    }

    async fn purge_kind(
        &self,
        status: TaskStatus,
        kind: &str,
        before: Timestamp,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let args = [
            ("status", Arg::from(status.word())),
            ("kind", Arg::from(kind)),
            ("window", Arg::from(PURGE_WINDOW)),
            ("before", Arg::Moment(before)),
            ("limit", Arg::from(limit)),
        ];
        let find = self.templates.fill(include_str!("purge_1_find.sql"), &args)?;
        let mut old = Vec::new();
        for mut row in self.read("purge", &find).await? {
            old.push(row.task_id()?);
        }
        let mut purged = 0;
        for chunk in old.chunks(KEYS_PER_STATEMENT) {
            let tasks = self.delete(
                include_str!("purge_2_tasks.sql"),
                include_str!("../../mysql/tasks/purge_2_tasks.sql"),
                chunk,
            )?;
            let events = self.delete(
                include_str!("purge_3_events.sql"),
                include_str!("../../mysql/tasks/purge_3_events.sql"),
                chunk,
            )?;
            purged += retry("purge", &self.subject(), self.database.time_to_try(), || async {
                let mut transaction = self.database.begin("purge").await?;
                let deleted = transaction.execute(&tasks).await?;
                if deleted != chunk.len() as u64 {
                    // An operator has taken one of them up again meanwhile: its history must stay.
                    transaction.rollback().await?;
                    return Ok(0);
                }
                transaction.execute(&events).await?;
                transaction.commit().await?;
                Ok(deleted)
            })
            .await?;
        }
        Ok(purged)
    }
}

#[async_trait]
impl<D: SqlDatabase> Inspect for SqlTasks<D> {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        let rows = self.read("inspect", &clock(&self.templates)?).await?;
        let Some(mut row) = rows.into_iter().next() else {
            let detail = "the database does not say what time it is";
            return Err(StoreError::new(StoreErrorKind::Corrupt, "inspect", self.subject(), detail));
        };
        row.moment("now")
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Task>, StoreError> {
        let limit = listing.limit.min(LIST_MAX);
        let (mut kind, mut after) = match (&listing.after, &listing.kind) {
            (Some((kind, id)), _) => (Some(kind.clone()), Some(*id)),
            (None, Some(kind)) => (Some(kind.clone()), None),
            (None, None) => (self.next_kind(listing.status, "").await?, None),
        };
        let mut tasks = Vec::new();
        while let Some(this) = kind {
            let missing = limit.saturating_sub(u32::try_from(tasks.len()).unwrap_or(u32::MAX));
            if missing == 0 {
                break;
            }
            tasks.extend(self.list_kind(listing.status, &this, after.take(), missing).await?);
            kind = match listing.kind {
                Some(_) => None,
                None => self.next_kind(listing.status, &this).await?,
            };
        }
        Ok(tasks)
    }

    async fn get(&self, task: TaskId) -> Result<Option<(Task, Vec<TaskEvent>)>, StoreError> {
        let statement = self.templates.fill(include_str!("get.sql"), &[("task", self.task(task))])?;
        let Some(row) = self.read("get", &statement).await?.into_iter().next() else { return Ok(None) };
        let found = row.task()?.0;
        let args = [("task", self.task(task)), ("limit", Arg::from(LIST_MAX))];
        let statement = self.templates.fill(include_str!("history.sql"), &args)?;
        let rows = self.read("get", &statement).await?;
        let events = rows.into_iter().map(|row| row.task_event(task)).collect::<Result<_, _>>()?;
        Ok(Some((found, events)))
    }

    async fn stats(&self) -> Result<TaskStats, StoreError> {
        let mut stats = TaskStats { workers: self.workers().await?, ..TaskStats::default() };
        for status in TaskStatus::ALL {
            for kind in self.kinds(status).await? {
                let args = vec![("status", Arg::from(status.word())), ("kind", Arg::from(kind.as_str()))];
                let tasks = self.count(include_str!("count_tasks.sql"), args).await?;
                stats.tasks.push(TaskCount { kind, status, tasks });
            }
        }
        let alive = stats.workers.iter().filter(|worker| worker.is_alive);
        let taken: HashSet<&str> = alive.flat_map(|worker| worker.kinds.iter().map(String::as_str)).collect();
        stats.entries = self.entries(&taken).await?;
        let oldest = self.templates.fill(include_str!("oldest_due.sql"), &[])?;
        let oldest = self.read("inspect", &oldest).await?.into_iter().next();
        stats.oldest_due = oldest.map(|mut row| row.moment("due_at")).transpose()?;
        Ok(stats)
    }

    async fn cancel(&self, task: TaskId, by: &str) -> Result<Settled, StoreError> {
        self.change_one("cancel", Want::of(task), &Change::Cancel { by: by.to_owned() }).await
    }

    async fn retry(&self, task: TaskId, by: &str) -> Result<Settled, StoreError> {
        let again = self.change_one("retry", Want::of(task), &Change::Again { by: by.to_owned() }).await;
        again.map_err(|error| match error.kind() {
            StoreErrorKind::Rejected => {
                let detail = "another live task has its unique key; cancel that one first, or let it end";
                StoreError::rejected("retry", task.to_string(), detail).caused_by(error)
            }
            _ => error,
        })
    }

    async fn set_limit(&self, kind: &str, most: Option<u32>) -> Result<(), StoreError> {
        check_kind(kind)?;
        let args =
            [("kind", Arg::from(kind)), ("most", Arg::from(most.map(|most| most.min(i32::MAX as u32))))];
        let forget = self.templates.fill(include_str!("forget_limit.sql"), &args)?;
        let set = self.templates.fill(include_str!("set_limit.sql"), &args)?;
        retry("set limit", &self.subject(), self.database.time_to_try(), || async {
            let mut transaction = self.database.begin("set limit").await?;
            transaction.execute(&forget).await?;
            if most.is_some() {
                transaction.execute(&set).await?;
            }
            transaction.commit().await
        })
        .await?;
        self.pace().limited = None;
        Ok(())
    }

    async fn limits(&self) -> Result<Vec<KindLimit>, StoreError> {
        self.read_limits().await
    }

    async fn purge(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut purged = 0;
        for status in [TaskStatus::Completed, TaskStatus::Failed, TaskStatus::Cancelled] {
            for kind in self.kinds(status).await? {
                let left = u64::from(limit).saturating_sub(purged);
                if left == 0 {
                    return Ok(purged);
                }
                let left = u32::try_from(left).unwrap_or(u32::MAX);
                purged += self.purge_kind(status, &kind, before, left).await?;
            }
        }
        Ok(purged)
    }
}
