//! What an operator asks of tasks in memory.

use std::collections::{BTreeMap, HashSet};

use async_trait::async_trait;

use super::MemoryTasks;
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::tasks::transition::Change;
use crate::tasks::{
    EntryCount, Inspect, KindLimit, LIST_MAX, Listing, Settled, Task, TaskCount, TaskEvent, TaskId,
    TaskStats, TaskStatus, WorkerInfo, check_kind,
};

fn settled<T>(step: Option<T>) -> Settled {
    if step.is_some() { Settled::Applied } else { Settled::Stale }
}

#[async_trait]
impl Inspect for MemoryTasks {
    async fn now(&self) -> Result<Timestamp, StoreError> {
        Ok(Self::now(self))
    }

    async fn list(&self, listing: &Listing) -> Result<Vec<Task>, StoreError> {
        let tables = self.tables();
        let mut tasks: Vec<&Task> = tables
            .tasks
            .values()
            .filter(|task| task.status == listing.status)
            .filter(|task| listing.kind.as_ref().is_none_or(|kind| *kind == task.kind))
            .filter(|task| {
                listing.after.as_ref().is_none_or(|(kind, id)| (&task.kind, task.id) > (kind, *id))
            })
            .collect();
        tasks.sort_unstable_by_key(|task| (&task.kind, task.id));
        Ok(tasks.into_iter().take(listing.limit.min(LIST_MAX) as usize).cloned().collect())
    }

    async fn get(&self, task: TaskId) -> Result<Option<(Task, Vec<TaskEvent>)>, StoreError> {
        let tables = self.tables();
        let Some(found) = tables.tasks.get(&task) else { return Ok(None) };
        Ok(Some((found.clone(), tables.events.get(&task).cloned().unwrap_or_default())))
    }

    async fn stats(&self) -> Result<TaskStats, StoreError> {
        let now = self.now();
        let tables = self.tables();
        let mut stats = TaskStats::default();
        for (worker, row) in &tables.workers {
            stats.workers.push(WorkerInfo {
                worker: *worker,
                name: row.name.clone(),
                kinds: row.kinds.clone(),
                started_at: row.started_at,
                lease_until: row.lease_until,
                is_alive: row.lease_until > now,
            });
        }
        let mut counts: BTreeMap<(TaskStatus, &str), u64> = BTreeMap::new();
        for task in tables.tasks.values() {
            *counts.entry((task.status, &task.kind)).or_default() += 1;
        }
        for ((status, kind), tasks) in counts {
            stats.tasks.push(TaskCount { kind: kind.to_owned(), status, tasks });
        }
        let alive = stats.workers.iter().filter(|worker| worker.is_alive);
        let taken: HashSet<&String> = alive.flat_map(|worker| &worker.kinds).collect();
        let mut entries: BTreeMap<&String, (u64, u64)> = BTreeMap::new();
        for (_, due_at, kind) in tables.entries.values() {
            let (due, later) = entries.entry(kind).or_default();
            *if *due_at <= now { due } else { later } += 1;
        }
        stats.entries = entries
            .into_iter()
            .map(|(kind, (due, later))| EntryCount {
                kind: kind.clone(),
                due,
                later,
                is_taken: taken.contains(kind),
            })
            .collect();
        stats.oldest_due = tables.entries.values().map(|(_, at, _)| *at).filter(|at| *at <= now).min();
        Ok(stats)
    }

    async fn cancel(&self, task: TaskId, by: &str) -> Result<Settled, StoreError> {
        let now = self.now();
        Ok(settled(self.tables().change(task, None, &Change::Cancel { by: by.to_owned() }, now)?))
    }

    async fn retry(&self, task: TaskId, by: &str) -> Result<Settled, StoreError> {
        let now = self.now();
        let mut tables = self.tables();
        let ended = tables.tasks.get(&task).filter(|task| !task.status.is_live());
        let key = ended.and_then(|task| task.unique_key.as_ref());
        if key.is_some_and(|key| tables.live_key(key).is_some()) {
            let detail = "another live task has its unique key; cancel that one first, or let it end";
            return Err(StoreError::rejected("retry", task.to_string(), detail));
        }
        Ok(settled(tables.change(task, None, &Change::Again { by: by.to_owned() }, now)?))
    }

    async fn set_limit(&self, kind: &str, most: Option<u32>) -> Result<(), StoreError> {
        check_kind(kind)?;
        let mut tables = self.tables();
        match most {
            Some(most) => tables.limits.insert(kind.to_owned(), most),
            None => tables.limits.remove(kind),
        };
        Ok(())
    }

    async fn limits(&self) -> Result<Vec<KindLimit>, StoreError> {
        let limit = |(kind, most): (&String, &u32)| KindLimit { kind: kind.clone(), most: *most };
        Ok(self.tables().limits.iter().map(limit).collect())
    }

    async fn purge(&self, before: Timestamp, limit: u32) -> Result<u64, StoreError> {
        let mut tables = self.tables();
        let is_old = |task: &&Task| task.finished_at.is_some_and(|at| at < before);
        let old: Vec<TaskId> =
            tables.tasks.values().filter(is_old).take(limit as usize).map(|task| task.id).collect();
        for id in &old {
            tables.tasks.remove(id);
            tables.events.remove(id);
        }
        Ok(old.len() as u64)
    }
}
