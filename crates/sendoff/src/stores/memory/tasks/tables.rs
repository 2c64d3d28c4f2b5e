//! The tables, and what is done to them under their lock.

use std::collections::{BTreeMap, HashMap};

use super::super::{MemoryOutbox, after};
use crate::claim::Timestamp;
use crate::error::StoreError;
use crate::outbox::WorkerId;
use crate::tasks::transition::{Change, Standing, Step, When, step};
use crate::tasks::{
    Claim, NewTask, Publish, Reaped, Task, TaskEvent, TaskEventKind, TaskId, TaskStatus, TaskToken,
};

/// A registered worker.
#[derive(Debug)]
pub(super) struct WorkerRow {
    pub(super) name: String,
    pub(super) kinds: Vec<String>,
    pub(super) started_at: Timestamp,
    pub(super) lease_until: Timestamp,
}

/// An entry: its turn, when it is due, its kind.
pub(super) type Entry = (i32, Timestamp, String);

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) tasks: BTreeMap<TaskId, Task>,
    pub(super) entries: BTreeMap<TaskId, Entry>,
    pub(super) events: HashMap<TaskId, Vec<TaskEvent>>,
    pub(super) workers: BTreeMap<WorkerId, WorkerRow>,
    pub(super) limits: BTreeMap<String, u32>,
    pub(super) publish: Option<(Publish, MemoryOutbox)>,
}

/// A task as it is written.
pub(super) fn new_task(new: &NewTask, now: Timestamp) -> Task {
    Task {
        id: TaskId::generate(),
        kind: new.kind.clone(),
        payload: new.payload.clone(),
        status: TaskStatus::NotStarted,
        priority: new.priority,
        unique_key: new.unique_key.clone(),
        run_at: new.run_at.unwrap_or(now),
        attempt: 0,
        attempts_max: new.attempts_max,
        run_time: new.run_time,
        owner: None,
        lease_until: None,
        created_at: now,
        started_at: None,
        finished_at: None,
        error: None,
        progress: None,
    }
}

impl Tables {
    /// The live task of this key.
    pub(super) fn live_key(&self, key: &str) -> Option<TaskId> {
        let is_it = |task: &&Task| task.status.is_live() && task.unique_key.as_deref() == Some(key);
        self.tasks.values().find(is_it).map(|task| task.id)
    }

    /// The task, if the claim stands.
    pub(super) fn under(&mut self, token: &TaskToken) -> Option<&mut Task> {
        self.tasks.get_mut(&token.task).filter(|task| task.token().as_ref() == Some(token))
    }

    pub(super) fn running(&self, is_it: impl Fn(&Task) -> bool) -> Vec<TaskId> {
        let running = self.tasks.values().filter(|task| task.status == TaskStatus::Running && is_it(task));
        running.map(|task| task.id).collect()
    }

    pub(super) fn enter(&mut self, id: TaskId) {
        if let Some(task) = self.tasks.get(&id) {
            self.entries.insert(id, (-i32::from(task.priority), task.run_at, task.kind.clone()));
        }
    }

    pub(super) fn tell(
        &mut self,
        id: TaskId,
        kind: TaskEventKind,
        detail: Option<String>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let Some(task) = self.tasks.get(&id) else { return Ok(()) };
        let event = TaskEvent { task: id, kind, attempt: task.attempt, owner: task.owner, at, detail };
        if let Some((publish, outbox)) = &self.publish {
            let mut transaction = outbox.begin();
            transaction.enqueue(&[publish.event(&event)?])?;
            transaction.commit()?;
        }
        self.events.entry(id).or_default().push(event);
        Ok(())
    }

    /// What a change came to; none: it is not possible.
    pub(super) fn change(
        &mut self,
        id: TaskId,
        token: Option<&TaskToken>,
        change: &Change,
        now: Timestamp,
    ) -> Result<Option<Step>, StoreError> {
        let Some(task) = self.tasks.get_mut(&id) else { return Ok(None) };
        let standing = Standing {
            status: task.status,
            attempt: task.attempt,
            attempts_max: task.attempts_max,
            owner: task.owner,
        };
        let Some(step) = step(&standing, token, change) else { return Ok(None) };
        task.status = step.status;
        task.finished_at = (!step.status.is_live()).then_some(now);
        task.lease_until = None;
        task.error = step.error.clone().or(task.error.take());
        match step.when {
            Some(When::In(wait)) => task.run_at = after(now, wait),
            Some(When::At(moment)) => task.run_at = moment,
            None => {}
        }
        if matches!(change, Change::Again { .. }) {
            task.attempts_max = task.attempts_max.max(task.attempt + 1);
        }
        if step.status == TaskStatus::Ready {
            self.enter(id);
        } else {
            self.entries.remove(&id);
        }
        self.tell(id, step.event, step.detail.clone(), now)?;
        Ok(Some(step))
    }

    pub(super) fn give_back(
        &mut self,
        tasks: &[TaskId],
        why: &'static str,
        now: Timestamp,
    ) -> Result<Reaped, StoreError> {
        let mut reaped = Reaped::default();
        for id in tasks {
            match self.change(*id, None, &Change::Return { why }, now)?.map(|step| step.status) {
                Some(TaskStatus::Failed) => reaped.failed += 1,
                Some(_) => reaped.returned += 1,
                None => {}
            }
        }
        Ok(reaped)
    }

    pub(super) fn claim(
        &mut self,
        claim: &Claim,
        limit: usize,
        now: Timestamp,
    ) -> Result<Vec<Task>, StoreError> {
        let mut due: Vec<(i32, Timestamp, TaskId)> = self
            .entries
            .iter()
            .filter(|(_, (_, due_at, kind))| *due_at <= now && claim.kinds.contains(kind))
            .map(|(id, (turn, due_at, _))| (*turn, *due_at, *id))
            .collect();
        due.sort_unstable();
        let mut running: HashMap<String, u32> = HashMap::new();
        for task in self.tasks.values().filter(|task| task.status == TaskStatus::Running) {
            *running.entry(task.kind.clone()).or_default() += 1;
        }
        let mut claimed = Vec::new();
        for (_, _, id) in due {
            if claimed.len() == limit {
                break;
            }
            let Some(task) = self.tasks.get_mut(&id).filter(|task| task.status == TaskStatus::Ready) else {
                self.entries.remove(&id);
                continue;
            };
            let of_kind = running.entry(task.kind.clone()).or_default();
            if self.limits.get(&task.kind).is_some_and(|most| *of_kind >= *most) {
                continue;
            }
            *of_kind += 1;
            task.status = TaskStatus::Running;
            task.attempt += 1;
            task.owner = Some(claim.worker);
            task.started_at = Some(now);
            task.lease_until = task.run_time.map(|time| after(now, time));
            task.progress = None;
            claimed.push(task.clone());
            self.entries.remove(&id);
            self.tell(id, TaskEventKind::TaskClaimed, None, now)?;
        }
        Ok(claimed)
    }
}
