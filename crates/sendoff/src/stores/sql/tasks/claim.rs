//! Claiming: the entry goes, the task is running, its event is written, in one transaction.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use tokio::time::Instant;

use super::tell::Happened;
use super::{
    Arg, Bind, KEYS_PER_STATEMENT, RowReader, SqlDatabase, SqlTasks, SqlTransaction, Statement, later, retry,
};
use crate::claim::{Timestamp, micros};
use crate::error::StoreError;
use crate::stores::sql::Plan;
use crate::tasks::{BATCH_MAX, Claim, Task, TaskEventKind, TaskId, TaskStatus, TaskToken};

/// So many entries that have become due are let in at a time.
const PROMOTED_MAX: u32 = 500;
/// While claims are full, entries that have become due are looked for this often; when one is not full, at once.
const PROMOTION_PAUSE: Duration = Duration::from_millis(100);
/// How long what is known of limits may be old. A kind that is limited meanwhile is not claimed until then.
const LIMITS_PAUSE: Duration = Duration::from_secs(1);

/// The next entries of a kind, and how many of them.
#[derive(Debug, Clone)]
struct Part {
    kind: String,
    limit: u32,
}

/// An entry, in the order in which entries are taken.
type Entry = (i64, Timestamp, TaskId, String);

impl<D: SqlDatabase> SqlTasks<D> {
    pub(super) async fn claim_due(&self, claim: &Claim) -> Result<Vec<Task>, StoreError> {
        let limit = claim.limit.min(BATCH_MAX);
        if claim.kinds.is_empty() || limit == 0 {
            return Ok(Vec::new());
        }
        if self.promotion_is_due() {
            self.promote().await?;
        }
        let mut tasks = self.claim_now(claim, limit).await?;
        let missing = limit.saturating_sub(u32::try_from(tasks.len()).unwrap_or(u32::MAX));
        if missing > 0 {
            match self.claim_promoted(claim, missing).await {
                Ok(more) => tasks.extend(more),
                Err(error) if tasks.is_empty() => return Err(error),
                // What has been claimed must reach its worker.
                Err(error) => tracing::warn!(%error, "tasks that have become due could not be claimed"),
            }
        }
        tasks.sort_by_key(|task| (-i32::from(task.priority), task.run_at, task.id));
        Ok(tasks)
    }

    async fn claim_promoted(&self, claim: &Claim, limit: u32) -> Result<Vec<Task>, StoreError> {
        if self.promote().await? == 0 { Ok(Vec::new()) } else { self.claim_now(claim, limit).await }
    }

    fn promotion_is_due(&self) -> bool {
        self.pace().promoted.is_none_or(|at| at.elapsed() >= PROMOTION_PAUSE)
    }

    /// Lets in entries that have become due; how many.
    pub(super) async fn promote(&self) -> Result<u64, StoreError> {
        self.pace().promoted = Some(Instant::now());
        let find = |lock| {
            let args = [("limit", Arg::from(PROMOTED_MAX)), ("lock", lock)];
            self.templates.fill(include_str!("promote_1_find.sql"), &args)
        };
        if self.read("claim", &find(Arg::Sql(""))?).await?.is_empty() {
            return Ok(0);
        }
        let locked = find(self.lock_free())?;
        retry("claim", &self.subject(), self.database.time_to_try(), || async {
            let mut transaction = self.database.begin("claim").await?;
            let mut due = Vec::new();
            for row in transaction.query(&locked).await? {
                due.push(RowReader::new(row).task_id()?);
            }
            let mut promoted = 0;
            for chunk in due.chunks(KEYS_PER_STATEMENT) {
                let args = [("tasks", self.tasks(chunk.iter().copied()))];
                let mark = self.templates.fill(include_str!("promote_2_mark.sql"), &args)?;
                promoted += transaction.execute(&mark).await?;
            }
            transaction.commit().await?;
            Ok(promoted)
        })
        .await
    }

    async fn claim_now(&self, claim: &Claim, limit: u32) -> Result<Vec<Task>, StoreError> {
        if self.is_fast() && !self.is_limited(&claim.kinds).await? {
            let statement = self.fast_claim(claim, limit)?;
            let rows = self.read("claim", &statement).await?;
            return rows.into_iter().map(|row| Ok(row.task()?.0)).collect();
        }
        retry("claim", &self.subject(), self.database.time_to_try(), || self.claim_once(claim, limit)).await
    }

    /// One of these kinds was limited when it was last asked.
    async fn is_limited(&self, kinds: &[String]) -> Result<bool, StoreError> {
        let known = {
            let pace = self.pace();
            let fresh = pace.limited.as_ref().filter(|(at, _)| at.elapsed() < LIMITS_PAUSE);
            fresh.map(|(_, limited)| kinds.iter().any(|kind| limited.contains(kind)))
        };
        if let Some(known) = known {
            return Ok(known);
        }
        let limited: HashSet<String> =
            self.read_limits().await?.into_iter().map(|limit| limit.kind).collect();
        let is_limited = kinds.iter().any(|kind| limited.contains(kind));
        self.pace().limited = Some((Instant::now(), limited));
        Ok(is_limited)
    }

    /// PostgreSQL's: one statement, which leaves out limited kinds.
    fn fast_claim(&self, claim: &Claim, limit: u32) -> Result<Statement, StoreError> {
        let worker = self.worker(claim.worker);
        let mut args = vec![("worker", worker.clone()), ("limit", Arg::from(limit))];
        let wanted = if let [kind] = &claim.kinds[..] {
            args.push(("kind", Arg::from(kind.as_str())));
            include_str!("../../postgres/tasks/claim_wanted_one.sql")
        } else {
            args.push(("kinds", Arg::Bound(Bind::Texts(claim.kinds.clone()))));
            include_str!("../../postgres/tasks/claim_wanted_many.sql")
        };
        let args = [("wanted", Arg::Union(wanted, vec![args])), ("worker", worker)];
        self.templates.fill(include_str!("../../postgres/tasks/claim.sql"), &args)
    }

    /// How the database would find the entries of this claim. Claims nothing.
    ///
    /// # Errors
    /// As a claim.
    pub async fn explain(&self, claim: &Claim) -> Result<Plan, StoreError> {
        if self.is_fast() {
            return self.database.explain(&self.fast_claim(claim, claim.limit)?).await;
        }
        let kind = claim.kinds.first().cloned().unwrap_or_default();
        self.database.explain(&self.pick(&Part { kind, limit: claim.limit }, self.lock_free())?).await
    }

    fn pick(&self, part: &Part, lock: Arg) -> Result<Statement, StoreError> {
        self.templates.fill(include_str!("claim_4_pick.sql"), &pick_args(part, lock))
    }

    async fn claim_once(&self, claim: &Claim, limit: u32) -> Result<Vec<Task>, StoreError> {
        let mut transaction = self.database.begin("claim").await?;
        let picked = match self.parts(transaction.as_mut(), claim, limit).await? {
            Some(parts) => self.lock_entries(transaction.as_mut(), parts, limit).await?,
            None => Vec::new(),
        };
        if picked.is_empty() {
            transaction.rollback().await?;
            return Ok(Vec::new());
        }
        let mut tasks = Vec::with_capacity(picked.len());
        for chunk in picked.chunks(KEYS_PER_STATEMENT) {
            tasks.extend(self.take(transaction.as_mut(), claim, chunk).await?);
        }
        transaction.commit().await?;
        Ok(tasks)
    }

    /// What of each kind may be taken; none: the worker is not alive.
    async fn parts(
        &self,
        transaction: &mut dyn SqlTransaction,
        claim: &Claim,
        limit: u32,
    ) -> Result<Option<Vec<Part>>, StoreError> {
        let args = [("worker", self.worker(claim.worker))];
        let may = self.templates.fill(include_str!("claim_1_may.sql"), &args)?;
        let (mut is_alive, mut limited) = (false, HashSet::new());
        for row in transaction.query(&may).await? {
            let mut row = RowReader::new(row);
            let (word, most) = (row.text("word")?, row.int("most")?);
            if most < 0 {
                is_alive = true;
            } else {
                limited.insert(word);
            }
        }
        if !is_alive {
            return Ok(None);
        }
        // In one order, whoever asks: two who lock the limits of the same kinds wait for each other, and do not deadlock.
        let mut kinds: Vec<&String> = claim.kinds.iter().collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut parts = Vec::with_capacity(kinds.len());
        for kind in kinds {
            let limit = if limited.contains(kind) {
                self.free_of_kind(transaction, kind, limit).await?
            } else {
                limit
            };
            if limit > 0 {
                parts.push(Part { kind: kind.clone(), limit });
            }
        }
        Ok(Some(parts))
    }

    /// How many more tasks of a limited kind may run. Its limit stays locked until this transaction ends.
    async fn free_of_kind(
        &self,
        transaction: &mut dyn SqlTransaction,
        kind: &str,
        limit: u32,
    ) -> Result<u32, StoreError> {
        let args = [("kind", Arg::from(kind)), ("lock", self.lock())];
        let lock = self.templates.fill(include_str!("claim_2_limit.sql"), &args)?;
        // It may have been lifted meanwhile.
        let Some(row) = transaction.query(&lock).await?.into_iter().next() else { return Ok(limit) };
        let most = RowReader::new(row).count("most")?;
        let args = [("kind", Arg::from(kind)), ("limit", Arg::from(most))];
        let count = self.templates.fill(include_str!("claim_3_running.sql"), &args)?;
        let running = transaction.query(&count).await?.into_iter().next();
        let running = running.map_or(Ok(0), |row| RowReader::new(row).count("running"))?;
        Ok(most.saturating_sub(running).min(limit))
    }

    /// Locks the first entries of these kinds together. Looked at first without a lock, so that no more are locked than are taken.
    async fn lock_entries(
        &self,
        transaction: &mut dyn SqlTransaction,
        mut parts: Vec<Part>,
        limit: u32,
    ) -> Result<Vec<TaskId>, StoreError> {
        if parts.len() > 1 {
            let looks = parts.iter().map(|part| pick_args(part, Arg::Sql("")));
            let look = self.templates.union(include_str!("claim_4_pick.sql"), looks)?;
            let mut entries: Vec<Entry> = Vec::new();
            for row in transaction.query(&look).await? {
                entries.push(entry(row)?);
            }
            entries.sort_unstable();
            entries.truncate(limit as usize);
            let mut wanted: BTreeMap<String, u32> = BTreeMap::new();
            for (_, _, _, kind) in entries {
                *wanted.entry(kind).or_default() += 1;
            }
            parts = wanted.into_iter().map(|(kind, limit)| Part { kind, limit }).collect();
        }
        let mut picked = Vec::new();
        for part in &parts {
            for row in transaction.query(&self.pick(part, self.lock_free())?).await? {
                picked.push(entry(row)?.2);
            }
        }
        picked.sort_unstable();
        Ok(picked)
    }

    /// Deletes these entries and marks their tasks. A task that is not ready was called off while its entry was locked here: its entry goes, and that is all.
    async fn take(
        &self,
        transaction: &mut dyn SqlTransaction,
        claim: &Claim,
        picked: &[TaskId],
    ) -> Result<Vec<Task>, StoreError> {
        let which = ("tasks", self.tasks(picked.iter().copied()));
        transaction.execute(&self.delete_entries(picked)?).await?;
        let read = self.templates.fill(include_str!("claim_5_read.sql"), &[which, ("lock", self.lock())])?;
        let (mut tasks, mut at) = (Vec::new(), None);
        for row in transaction.query(&read).await? {
            let (task, now) = RowReader::new(row).task()?;
            at = Some(now);
            tasks.push(task);
        }
        let Some(now) = at else { return Ok(Vec::new()) };
        let args = [
            ("worker", self.worker(claim.worker)),
            ("now", Arg::Moment(now)),
            ("tasks", self.tasks(tasks.iter().map(|task| task.id))),
        ];
        let mark = self.templates.fill(include_str!("claim_6_mark.sql"), &args)?;
        let marked = transaction.execute(&mark).await?;
        if marked != tasks.len() as u64 {
            let detail = format!("{} tasks were locked but {marked} marked", tasks.len());
            return Err(StoreError::schema("claim", self.subject(), detail));
        }
        for task in &mut tasks {
            task.status = TaskStatus::Running;
            task.attempt += 1;
            task.owner = Some(claim.worker);
            task.started_at = Some(now);
            task.lease_until = task.run_time.map(|time| later(now, micros(time)));
            task.progress = None;
        }
        let happened: Vec<Happened> = tasks
            .iter()
            .map(|task| Happened {
                task: task.id,
                kind: TaskEventKind::TaskClaimed,
                attempt: task.attempt,
                owner: task.owner,
                detail: None,
            })
            .collect();
        self.tell(transaction, &happened, Some(now)).await?;
        Ok(tasks)
    }

    /// By PostgreSQL's one statement; the tokens that were current.
    pub(super) async fn complete_fast(&self, tokens: &[TaskToken]) -> Result<HashSet<TaskToken>, StoreError> {
        let mut done = HashSet::new();
        for chunk in tokens.chunks(BATCH_MAX as usize) {
            for mut row in self.read("complete", &self.fast_completion(chunk)?).await? {
                done.extend(row.token()?.1);
            }
        }
        Ok(done)
    }

    fn fast_completion(&self, tokens: &[TaskToken]) -> Result<Statement, StoreError> {
        let mut sorted = tokens.to_vec();
        sorted.sort_unstable();
        let ids = |of: fn(&TaskToken) -> uuid::Uuid| Arg::Bound(Bind::Uuids(sorted.iter().map(of).collect()));
        let attempts = sorted.iter().map(|token| i64::from(token.attempt)).collect();
        let args = [
            ("tasks", ids(|token| token.task.0)),
            ("attempts", Arg::Bound(Bind::Ints(attempts))),
            ("owners", ids(|token| token.owner.0)),
        ];
        self.templates.fill(include_str!("../../postgres/tasks/complete.sql"), &args)
    }

    /// How the database would find the tasks of these claims to complete them. Completes nothing.
    ///
    /// # Errors
    /// As a completion.
    pub async fn explain_completion(&self, tokens: &[TaskToken]) -> Result<Plan, StoreError> {
        if self.is_fast() {
            return self.database.explain(&self.fast_completion(tokens)?).await;
        }
        let args = [("tasks", self.tasks(tokens.iter().map(|token| token.task))), ("lock", self.lock())];
        self.database.explain(&self.templates.fill(include_str!("lock.sql"), &args)?).await
    }
}

fn pick_args(part: &Part, lock: Arg) -> Vec<(&'static str, Arg)> {
    vec![("kind", Arg::from(part.kind.as_str())), ("limit", Arg::from(part.limit)), ("lock", lock)]
}

fn entry(row: Vec<crate::claim::Value>) -> Result<Entry, StoreError> {
    let mut row = RowReader::new(row);
    let (task, kind) = (row.task_id()?, row.text("kind")?);
    Ok((row.int("turn")?, row.moment("due_at")?, task, kind))
}
