//! What becomes of tasks, in one transaction: they are locked, decided about and moved, and what happened is written down.

use std::collections::HashMap;

use super::tell::Happened;
use super::{Arg, KEYS_PER_STATEMENT, RowReader, SqlDatabase, SqlTasks, SqlTransaction, retry};
use crate::claim::micros;
use crate::error::StoreError;
use crate::tasks::transition::{Change, Standing, Step, When, step};
use crate::tasks::{Settled, TaskId, TaskStatus, TaskToken};

/// A task that something is to become of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Want {
    pub(super) task: TaskId,
    /// Under this claim only.
    pub(super) token: Option<TaskToken>,
    /// Only if its time has run out.
    pub(super) is_overdue: bool,
}

impl Want {
    pub(super) fn under(token: &TaskToken) -> Self {
        Self { task: token.task, token: Some(*token), is_overdue: false }
    }

    pub(super) fn of(task: TaskId) -> Self {
        Self { task, token: None, is_overdue: false }
    }
}

/// What each wish came to; those that changed nothing are not among them. A task may be named twice, under two claims.
pub(super) type Steps = HashMap<(TaskId, Option<TaskToken>), Step>;

impl<D: SqlDatabase> SqlTasks<D> {
    /// Makes a change to these tasks, where it is possible.
    pub(super) async fn change(
        &self,
        op: &'static str,
        wants: &[Want],
        change: &Change,
    ) -> Result<Steps, StoreError> {
        if wants.is_empty() {
            return Ok(Steps::new());
        }
        retry(op, &self.subject(), self.database.time_to_try(), || async {
            let mut transaction = self.database.begin(op).await?;
            let mut steps = Steps::new();
            for chunk in wants.chunks(KEYS_PER_STATEMENT) {
                steps.extend(self.change_in(transaction.as_mut(), chunk, change).await?);
            }
            if steps.is_empty() {
                transaction.rollback().await?;
            } else {
                transaction.commit().await?;
            }
            Ok(steps)
        })
        .await
    }

    pub(super) async fn change_one(
        &self,
        op: &'static str,
        want: Want,
        change: &Change,
    ) -> Result<Settled, StoreError> {
        let steps = self.change(op, &[want], change).await?;
        Ok(if steps.is_empty() { Settled::Stale } else { Settled::Applied })
    }

    /// How these tasks stand. They stay so until the transaction ends.
    pub(super) async fn lock_tasks(
        &self,
        transaction: &mut dyn SqlTransaction,
        tasks: impl IntoIterator<Item = TaskId>,
    ) -> Result<HashMap<TaskId, (Standing, bool)>, StoreError> {
        let args = [("tasks", self.tasks(tasks)), ("lock", self.lock())];
        let lock = self.templates.fill(include_str!("lock.sql"), &args)?;
        let mut standings = HashMap::new();
        for row in transaction.query(&lock).await? {
            let (id, standing, is_overdue) = RowReader::new(row).standing()?;
            standings.insert(id, (standing, is_overdue));
        }
        Ok(standings)
    }

    async fn change_in(
        &self,
        transaction: &mut dyn SqlTransaction,
        wants: &[Want],
        change: &Change,
    ) -> Result<Steps, StoreError> {
        let standings = self.lock_tasks(transaction, wants.iter().map(|want| want.task)).await?;
        let mut steps = Steps::new();
        let mut happened = Vec::new();
        // One change leads to few different steps: those who take the same one go together.
        let mut groups: Vec<(Step, Vec<TaskId>)> = Vec::new();
        for want in wants {
            let Some((standing, is_overdue)) = standings.get(&want.task) else { continue };
            let key = (want.task, want.token);
            if want.is_overdue && !is_overdue || steps.contains_key(&key) {
                continue;
            }
            let Some(step) = step(standing, want.token.as_ref(), change) else { continue };
            happened.push(Happened {
                task: want.task,
                kind: step.event,
                attempt: standing.attempt,
                owner: standing.owner,
                detail: step.detail.clone(),
            });
            match groups.iter_mut().find(|(known, _)| *known == step) {
                Some((_, tasks)) => tasks.push(want.task),
                None => groups.push((step.clone(), vec![want.task])),
            }
            steps.insert(key, step);
        }
        for (step, tasks) in &groups {
            self.move_tasks(transaction, step, tasks, change).await?;
        }
        self.tell(transaction, &happened, None).await?;
        Ok(steps)
    }

    async fn move_tasks(
        &self,
        transaction: &mut dyn SqlTransaction,
        step: &Step,
        tasks: &[TaskId],
        change: &Change,
    ) -> Result<(), StoreError> {
        let which = ("tasks", self.tasks(tasks.iter().copied()));
        let run_at = match step.when {
            Some(When::In(wait)) => Arg::Now(micros(wait)),
            Some(When::At(moment)) => Arg::Moment(moment),
            None => Arg::Sql("t.run_at"),
        };
        let one_more = "CASE WHEN t.attempts_max > t.attempt THEN t.attempts_max ELSE t.attempt + 1 END";
        let is_again = matches!(change, Change::Again { .. });
        let args = [
            ("status", Arg::from(step.status.word())),
            ("run_at", run_at),
            ("attempts_max", Arg::Sql(if is_again { one_more } else { "t.attempts_max" })),
            ("finished_at", if step.status.is_live() { Arg::Null } else { Arg::Now(0) }),
            ("lease_until", Arg::Null),
            ("error", step.error.as_deref().map_or(Arg::Sql("t.error"), Arg::from)),
            which.clone(),
        ];
        transaction.execute(&self.templates.fill(include_str!("move.sql"), &args)?).await?;
        if step.status == TaskStatus::Ready {
            transaction.execute(&self.templates.fill(include_str!("enter.sql"), &[which])?).await?;
        } else if matches!(change, Change::Cancel { .. }) {
            self.drop_entries(transaction, tasks).await?;
        }
        Ok(())
    }

    /// Deletes entries of tasks that are locked here. A claim that has an entry locked waits for its task, will find that not ready, and deletes the entry by
    /// itself: who waited for it here would wait for ever.
    pub(super) async fn drop_entries(
        &self,
        transaction: &mut dyn SqlTransaction,
        tasks: &[TaskId],
    ) -> Result<(), StoreError> {
        let args = [("tasks", self.tasks(tasks.iter().copied())), ("lock", self.lock_free())];
        let find = self.templates.fill(include_str!("find_entries.sql"), &args)?;
        let mut free = Vec::new();
        for row in transaction.query(&find).await? {
            free.push(RowReader::new(row).task_id()?);
        }
        if !free.is_empty() {
            transaction.execute(&self.delete_entries(&free)?).await?;
        }
        Ok(())
    }
}
