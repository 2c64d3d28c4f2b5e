//! What a runner asks of tasks in SQL.

use std::collections::HashSet;
use std::time::Duration;

use async_trait::async_trait;

use super::settle::{Steps, Want};
use super::tell::Happened;
use super::{Arg, KEYS_PER_STATEMENT, SqlDatabase, SqlTasks, retry};
use crate::claim::micros;
use crate::error::StoreError;
use crate::outbox::WorkerId;
use crate::tasks::transition::{Change, When};
use crate::tasks::{
    BATCH_MAX, CheckPoint, Checked, Claim, KINDS_MAX, Member, Reaped, Settled, Store, Task, TaskEventKind,
    TaskStatus, TaskToken, check_kind, kept,
};

/// Why a task is ready again.
const LOST: &str = "its worker was lost";
const LEFT: &str = "its worker stopped before it was done";
const OVERDUE: &str = "its time ran out";

#[async_trait]
impl<D: SqlDatabase> Store for SqlTasks<D> {
    async fn join(&self, member: &Member) -> Result<(), StoreError> {
        if member.kinds.len() > KINDS_MAX {
            let detail = format!("it takes {} kinds; at most {KINDS_MAX} are taken", member.kinds.len());
            return Err(StoreError::rejected("join", "worker", detail));
        }
        for kind in &member.kinds {
            check_kind(kind)?;
        }
        let name: String = kept(&member.name).chars().take(60).collect();
        let args = [
            ("worker", self.worker(member.worker)),
            ("name", Arg::from(name.as_str())),
            ("kinds", Arg::from(member.kinds.join("\n").as_str())),
            ("lease_until", Arg::Now(micros(member.lease))),
        ];
        self.write("join", &self.templates.fill(include_str!("join.sql"), &args)?).await?;
        Ok(())
    }

    async fn beat(&self, member: &Member) -> Result<bool, StoreError> {
        let args = [("worker", self.worker(member.worker)), ("lease_until", Arg::Now(micros(member.lease)))];
        Ok(self.write("beat", &self.templates.fill(include_str!("beat.sql"), &args)?).await? > 0)
    }

    async fn leave(&self, worker: WorkerId) -> Result<Reaped, StoreError> {
        // First: from now on it claims nothing, and if we get no further, its tasks are those of an unknown worker.
        let args = [("worker", self.worker(worker))];
        self.write("leave", &self.templates.fill(include_str!("leave.sql"), &args)?).await?;
        let mut reaped = Reaped::default();
        loop {
            let wants: Vec<Want> = self.owned(worker).await?.iter().map(Want::under).collect();
            let steps = self.change("leave", &wants, &Change::Return { why: LEFT }).await?;
            count(&mut reaped, &steps);
            if wants.len() < KEYS_PER_STATEMENT || steps.is_empty() {
                return Ok(reaped);
            }
        }
    }

    async fn claim(&self, claim: &Claim) -> Result<Vec<Task>, StoreError> {
        self.claim_due(claim).await
    }

    async fn complete(&self, tokens: &[TaskToken]) -> Result<Vec<Settled>, StoreError> {
        let settled = |is_applied| if is_applied { Settled::Applied } else { Settled::Stale };
        if self.is_fast() {
            let mut done = self.complete_fast(tokens).await?;
            // One that is named twice is completed once.
            let answer = |token: &TaskToken| settled(done.remove(token));
            return Ok(tokens.iter().map(answer).collect());
        }
        let wants: Vec<Want> = tokens.iter().map(Want::under).collect();
        let mut steps = Steps::new();
        for chunk in wants.chunks(BATCH_MAX as usize) {
            steps.extend(self.change("complete", chunk, &Change::Complete).await?);
        }
        Ok(tokens.iter().map(|token| settled(steps.remove(&(token.task, Some(*token))).is_some())).collect())
    }

    async fn fail(&self, token: &TaskToken, error: &str) -> Result<Settled, StoreError> {
        self.change_one("fail", Want::under(token), &Change::Fail { error: error.to_owned() }).await
    }

    async fn schedule_retry(
        &self,
        token: &TaskToken,
        when: When,
        error: &str,
    ) -> Result<Settled, StoreError> {
        let change = Change::Retry { when, error: error.to_owned() };
        self.change_one("schedule retry", Want::under(token), &change).await
    }

    async fn extend(&self, token: &TaskToken, time: Duration) -> Result<Settled, StoreError> {
        retry("extend", &self.subject(), self.database.time_to_try(), || async {
            let mut transaction = self.database.begin("extend").await?;
            let standings = self.lock_tasks(transaction.as_mut(), [token.task]).await?;
            if !standings.get(&token.task).is_some_and(|(standing, _)| standing.is_under(token)) {
                transaction.rollback().await?;
                return Ok(Settled::Stale);
            }
            let args = [("tasks", self.tasks([token.task])), ("lease_until", Arg::Now(micros(time)))];
            transaction.execute(&self.templates.fill(include_str!("extend.sql"), &args)?).await?;
            let extended = Happened {
                task: token.task,
                kind: TaskEventKind::TaskExtended,
                attempt: token.attempt,
                owner: Some(token.owner),
                detail: None,
            };
            self.tell(transaction.as_mut(), &[extended], None).await?;
            transaction.commit().await?;
            Ok(Settled::Applied)
        })
        .await
    }

    async fn report(&self, token: &TaskToken, progress: &str) -> Result<Settled, StoreError> {
        let args = [
            ("task", self.task(token.task)),
            ("attempt", Arg::from(token.attempt)),
            ("worker", self.worker(token.owner)),
            ("progress", Arg::from(kept(progress).as_str())),
        ];
        let written = self.write("report", &self.templates.fill(include_str!("report.sql"), &args)?).await?;
        Ok(if written > 0 { Settled::Applied } else { Settled::Stale })
    }

    async fn held(&self, tokens: &[TaskToken]) -> Result<HashSet<TaskToken>, StoreError> {
        let mut held = HashSet::new();
        for chunk in tokens.chunks(KEYS_PER_STATEMENT) {
            let args = [("tasks", self.tasks(chunk.iter().map(|token| token.task)))];
            let statement = self.templates.fill(include_str!("held.sql"), &args)?;
            for mut row in self.read("held", &statement).await? {
                held.extend(row.token()?.1);
            }
        }
        held.retain(|token| tokens.contains(token));
        Ok(held)
    }

    async fn owned(&self, worker: WorkerId) -> Result<Vec<TaskToken>, StoreError> {
        let limit = u32::try_from(KEYS_PER_STATEMENT).unwrap_or(u32::MAX);
        let args = [("worker", self.worker(worker)), ("limit", Arg::from(limit))];
        let mut owned = Vec::new();
        for mut row in self.read("owned", &self.templates.fill(include_str!("owned.sql"), &args)?).await? {
            owned.extend(row.token()?.1);
        }
        Ok(owned)
    }

    async fn reap(&self, limit: u32) -> Result<Reaped, StoreError> {
        let args = [("limit", Arg::from(limit.min(BATCH_MAX)))];
        let find = self.templates.fill(include_str!("reap_1_find.sql"), &args)?;
        let (mut lost, mut overdue) = (Vec::new(), Vec::new());
        for mut row in self.read("reap", &find).await? {
            let (task, token) = row.token()?;
            let is_overdue = row.int("is_overdue")? != 0;
            let want = Want { task, token, is_overdue };
            if is_overdue { overdue.push(want) } else { lost.push(want) }
        }
        let mut reaped = Reaped::default();
        count(&mut reaped, &self.change("reap", &lost, &Change::Return { why: LOST }).await?);
        count(&mut reaped, &self.change("reap", &overdue, &Change::Return { why: OVERDUE }).await?);
        if lost.len() + overdue.len() < limit as usize {
            self.write("reap", &self.templates.fill(include_str!("reap_2_forget.sql"), &[])?).await?;
        }
        Ok(reaped)
    }

    async fn check(&self, from: CheckPoint, limit: u32) -> Result<Checked, StoreError> {
        self.check_from(from, limit.clamp(1, BATCH_MAX)).await
    }
}

fn count(reaped: &mut Reaped, steps: &Steps) {
    for step in steps.values() {
        match step.status {
            TaskStatus::Failed => reaped.failed += 1,
            _ => reaped.returned += 1,
        }
    }
}
