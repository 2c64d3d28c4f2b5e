//! From a row to a task.

use std::time::Duration;

use super::RowReader;
use crate::claim::Timestamp;
use crate::error::{StoreError, StoreErrorKind};
use crate::outbox::WorkerId;
use crate::tasks::transition::Standing;
use crate::tasks::{Task, TaskEvent, TaskEventKind, TaskId, TaskStatus, TaskToken};

fn corrupt(detail: String) -> StoreError {
    StoreError::new(StoreErrorKind::Corrupt, "read", "tasks", detail)
}

impl RowReader {
    pub(super) fn task_id(&mut self) -> Result<TaskId, StoreError> {
        Ok(TaskId(self.uuid("id")?))
    }

    fn owner(&mut self) -> Result<Option<WorkerId>, StoreError> {
        Ok(self.optional_uuid("owner")?.map(WorkerId))
    }

    pub(super) fn status(&mut self) -> Result<TaskStatus, StoreError> {
        let word = self.text("status")?;
        TaskStatus::from_word(&word).ok_or_else(|| corrupt(format!("unknown status `{word}`")))
    }

    /// A row of `claim_5_read.sql`, `list.sql` and others: the columns of a task, and what the clock shows.
    pub(super) fn task(mut self) -> Result<(Task, Timestamp), StoreError> {
        let task = Task {
            id: self.task_id()?,
            kind: self.text("kind")?,
            payload: self.bytes("payload")?,
            status: self.status()?,
            priority: i16::try_from(self.int("priority")?)
                .map_err(|_| corrupt("column `priority` is out of range".to_owned()))?,
            unique_key: self.optional_text("unique_key")?,
            run_at: self.moment("run_at")?,
            attempt: self.count("attempt")?,
            attempts_max: self.count("attempts_max")?,
            run_time: self
                .optional_int("run_time")?
                .map(|micros| Duration::from_micros(u64::try_from(micros).unwrap_or_default())),
            owner: self.owner()?,
            lease_until: self.optional_moment("lease_until")?,
            created_at: self.moment("created_at")?,
            started_at: self.optional_moment("started_at")?,
            finished_at: self.optional_moment("finished_at")?,
            error: self.optional_text("error")?,
            progress: self.optional_text("progress")?,
        };
        Ok((task, self.moment("now")?))
    }

    /// A row of `lock.sql`: how a task stands, and whether its time has run out.
    pub(super) fn standing(mut self) -> Result<(TaskId, Standing, bool), StoreError> {
        let id = self.task_id()?;
        let standing = Standing {
            status: self.status()?,
            attempt: self.count("attempt")?,
            attempts_max: self.count("attempts_max")?,
            owner: self.owner()?,
        };
        Ok((id, standing, self.int("is_overdue")? != 0))
    }

    /// A task, an attempt and an owner; none: nobody owns it.
    pub(super) fn token(&mut self) -> Result<(TaskId, Option<TaskToken>), StoreError> {
        let (task, attempt) = (self.task_id()?, self.count("attempt")?);
        Ok((task, self.owner()?.map(|owner| TaskToken { task, attempt, owner })))
    }

    /// A row of `history.sql`.
    pub(super) fn task_event(mut self, task: TaskId) -> Result<TaskEvent, StoreError> {
        let word = self.text("event")?;
        let kind =
            TaskEventKind::from_word(&word).ok_or_else(|| corrupt(format!("unknown event `{word}`")))?;
        Ok(TaskEvent {
            task,
            kind,
            attempt: self.count("attempt")?,
            owner: self.owner()?,
            at: self.moment("at")?,
            detail: self.optional_text("detail")?,
        })
    }
}
