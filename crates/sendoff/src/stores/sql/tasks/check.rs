//! Tasks and entries that do not belong together: found page by page, and mended.

use super::{Arg, KEYS_PER_STATEMENT, RowReader, SqlDatabase, SqlTasks, from_the_start, retry};
use crate::error::StoreError;
use crate::tasks::{CheckPoint, Checked, TaskId, TaskStatus};

impl<D: SqlDatabase> SqlTasks<D> {
    pub(super) async fn check_from(&self, from: CheckPoint, limit: u32) -> Result<Checked, StoreError> {
        match from.ready {
            None => self.check_entries(from.entry, limit).await,
            Some((kind, after)) => self.check_ready(kind, after, limit).await,
        }
    }

    async fn check_entries(&self, after: Option<TaskId>, limit: u32) -> Result<Checked, StoreError> {
        let args = [("after", self.task(from_the_start(after))), ("limit", Arg::from(limit))];
        let rows =
            self.read("check", &self.templates.fill(include_str!("check_1_entries.sql"), &args)?).await?;
        let (seen, mut last) = (rows.len(), None);
        let (mut orphaned, mut left_over) = (Vec::new(), Vec::new());
        for mut row in rows {
            let task = row.task_id()?;
            last = Some(task);
            match row.optional_text("status")? {
                None => orphaned.push(task),
                Some(status) if status != TaskStatus::Ready.word() => left_over.push(task),
                Some(_) => {}
            }
        }
        let is_last = seen < limit as usize;
        let mut checked = Checked {
            next: Some(CheckPoint {
                entry: last,
                ready: if is_last { Some((String::new(), None)) } else { None },
            }),
            ..Checked::default()
        };
        for chunk in orphaned.chunks(KEYS_PER_STATEMENT) {
            // A task that is not there never will be: nobody makes an entry before its task.
            if self.write("check", &self.delete_entries(chunk)?).await? > 0 {
                checked.orphaned.extend(chunk);
            }
        }
        for chunk in left_over.chunks(KEYS_PER_STATEMENT) {
            checked.left_over.extend(self.drop_left_over(chunk).await?);
        }
        Ok(checked)
    }

    /// Looked at again under the tasks' locks: they may have become ready meanwhile.
    async fn drop_left_over(&self, tasks: &[TaskId]) -> Result<Vec<TaskId>, StoreError> {
        retry("check", &self.subject(), self.database.time_to_try(), || async {
            let mut transaction = self.database.begin("check").await?;
            let standings = self.lock_tasks(transaction.as_mut(), tasks.iter().copied()).await?;
            let is_ready =
                |standing: &crate::tasks::transition::Standing| standing.status == TaskStatus::Ready;
            let mut dropped: Vec<TaskId> = standings
                .iter()
                .filter(|(_, (standing, _))| !is_ready(standing))
                .map(|(task, _)| *task)
                .collect();
            // A claim that was under way has taken its entry with it.
            if !dropped.is_empty() {
                let args = [("tasks", self.tasks(dropped.clone())), ("lock", self.lock_free())];
                let find = self.templates.fill(include_str!("find_entries.sql"), &args)?;
                dropped.clear();
                for row in transaction.query(&find).await? {
                    dropped.push(RowReader::new(row).task_id()?);
                }
                self.drop_entries(transaction.as_mut(), &dropped).await?;
            }
            transaction.commit().await?;
            dropped.sort_unstable();
            Ok(dropped)
        })
        .await
    }

    async fn check_ready(
        &self,
        kind: String,
        after: Option<TaskId>,
        limit: u32,
    ) -> Result<Checked, StoreError> {
        let args = [
            ("kind", Arg::from(kind.as_str())),
            ("after", self.task(from_the_start(after))),
            ("limit", Arg::from(limit)),
        ];
        let rows =
            self.read("check", &self.templates.fill(include_str!("check_2_ready.sql"), &args)?).await?;
        let (seen, mut last, mut missing) = (rows.len(), None, Vec::new());
        for mut row in rows {
            let task = row.task_id()?;
            last = Some(task);
            if row.optional_uuid("task")?.is_none() {
                missing.push(task);
            }
        }
        let next = if seen < limit as usize {
            self.next_kind(TaskStatus::Ready, &kind).await?.map(|kind| (kind, None))
        } else {
            Some((kind, last))
        };
        let mut checked = Checked {
            next: next.map(|ready| CheckPoint { entry: None, ready: Some(ready) }),
            ..Checked::default()
        };
        for chunk in missing.chunks(KEYS_PER_STATEMENT) {
            checked.unentered.extend(self.enter_missing(chunk).await?);
        }
        Ok(checked)
    }

    /// Looked at again under the tasks' locks: they may have been claimed meanwhile.
    async fn enter_missing(&self, tasks: &[TaskId]) -> Result<Vec<TaskId>, StoreError> {
        retry("check", &self.subject(), self.database.time_to_try(), || async {
            let mut transaction = self.database.begin("check").await?;
            let standings = self.lock_tasks(transaction.as_mut(), tasks.iter().copied()).await?;
            let mut missing: Vec<TaskId> = standings
                .iter()
                .filter(|(_, (standing, _))| standing.status == TaskStatus::Ready)
                .map(|(task, _)| *task)
                .collect();
            if !missing.is_empty() {
                let args = [("tasks", self.tasks(missing.clone())), ("lock", Arg::Sql(""))];
                let find = self.templates.fill(include_str!("find_entries.sql"), &args)?;
                for row in transaction.query(&find).await? {
                    let entered = RowReader::new(row).task_id()?;
                    missing.retain(|task| *task != entered);
                }
            }
            if !missing.is_empty() {
                let args = [("tasks", self.tasks(missing.clone()))];
                transaction.execute(&self.templates.fill(include_str!("enter.sql"), &args)?).await?;
            }
            transaction.commit().await?;
            missing.sort_unstable();
            Ok(missing)
        })
        .await
    }
}
