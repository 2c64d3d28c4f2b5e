//! One claiming loop over a host's rows.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::backing::Backing;
use super::keeper;
use super::leases::{Answer, Change, Grant};
use super::reading::Row;
use super::state::{Flying, Held, State};
use crate::claim::{ClaimSpec, Claimable as _, Key, Record};
use crate::error::StoreError;
use crate::outbox::{
    Cause, Claimed, Engine, Failure, Lane, LaneSet, OnExhausted, Outcome, Receipt, Stats, Summary, Token,
    WorkerConfig, WorkerId,
};

/// The status words other than pending are looked at so often at most: they are for what failed, and for what was lost.
const OTHERS_EVERY: Duration = Duration::from_millis(100);

/// One claiming loop over a host's rows.
#[derive(Debug)]
pub(super) struct RowWorker<B: Backing> {
    inner: Arc<Inner<B>>,
    keeper: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
pub(super) struct Inner<B> {
    pub(super) backing: Arc<B>,
    pub(super) config: WorkerConfig,
    id: WorkerId,
    state: Mutex<State>,
    /// One claim at a time: each is counted on before the next one asks for room.
    claiming: tokio::sync::Mutex<()>,
    started: Instant,
}

impl<B: Backing> Inner<B> {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn deadline_from(&self, before: Instant) -> Instant {
        before + self.config.lease - self.config.margin()
    }

    pub(super) fn grant(&self) -> Grant {
        let has_token = self.backing.mapping().claim.as_ref().is_some_and(|claim| claim.token.is_some());
        Grant::new(&self.config.name, self.id.0, has_token)
    }
}

fn check(config: &WorkerConfig) -> Result<(), StoreError> {
    config.check()?;
    let refuse = |detail: &str| Err(StoreError::rejected("start worker", &config.name, detail.to_owned()));
    if config.lanes != LaneSet::ALL || config.exclusive {
        return refuse(
            "rows of an adopted table are claimed one by one; it has no lanes to be limited to, nor to have alone",
        );
    }
    if config.on_exhausted != OnExhausted::Skip {
        return refuse(
            "what is given up in an adopted table is skipped; block and divert need sendoff's own outbox",
        );
    }
    Ok(())
}

impl<B: Backing> RowWorker<B> {
    pub(super) fn start(backing: Arc<B>, config: WorkerConfig) -> Result<Self, StoreError> {
        check(&config)?;
        let inner = Arc::new(Inner {
            backing,
            config,
            id: WorkerId::generate(),
            state: Mutex::default(),
            claiming: tokio::sync::Mutex::new(()),
            started: Instant::now(),
        });
        let keeper = tokio::spawn(keeper::run(Arc::clone(&inner)));
        Ok(Self { inner, keeper: Mutex::new(Some(keeper)) })
    }

    fn end_keeper(&self) {
        if let Some(keeper) = self.keeper.lock().unwrap_or_else(PoisonError::into_inner).take() {
            keeper.abort();
        }
    }

    /// How many may be claimed, and whether that is one that is tried alone. None: nothing now.
    fn room(&self, limit: usize) -> Option<(u32, bool)> {
        let state = self.inner.state();
        if state.is_stopping || state.has_one_alone() {
            return None;
        }
        if state.has_suspects {
            return state.flying.is_empty().then_some((1, true));
        }
        let window = (self.inner.config.window as usize).saturating_sub(state.flying.len());
        let room = limit.min(window).min(state.fitting(self.inner.config.bytes));
        u32::try_from(room).ok().filter(|room| *room > 0).map(|room| (room, false))
    }

    /// The claims of this turn.
    fn specs(&self, grant: &Grant, room: u32, alone: bool) -> Result<Vec<ClaimSpec>, StoreError> {
        let (mapping, lease) = (self.inner.backing.mapping(), self.inner.config.lease);
        if alone {
            return mapping.suspect(grant, lease);
        }
        let mut specs = mapping.turns(grant, lease, room)?;
        let mut state = self.inner.state();
        let now = Instant::now();
        if state.others_at.is_none_or(|at| at <= now) {
            state.others_at = Some(now + OTHERS_EVERY.min(self.inner.config.tick()));
            // What was begun before comes before what is new.
            specs.rotate_left(1);
        } else if self.inner.backing.claims_new() {
            specs.clear();
        } else {
            specs.truncate(1);
        }
        Ok(specs)
    }

    async fn claim_rows(&self, grant: &Grant, room: u32, alone: bool) -> Result<Vec<Record>, StoreError> {
        let backing = &self.inner.backing;
        let mut specs: std::collections::VecDeque<ClaimSpec> = self.specs(grant, room, alone)?.into();
        if backing.claims_new() && !specs.is_empty() {
            backing.return_lost().await?;
        }
        let mut claimed: Vec<Record> = Vec::new();
        let (mut runs_asked, mut taken_in) = (alone, alone || backing.claims_new());
        while let Some(spec) = specs.pop_front() {
            let left = room.saturating_sub(claimed.len() as u32);
            if left == 0 {
                break;
            }
            match backing.claims().claim(&spec.clone().with_limit(left)).await {
                Ok(rows) => claimed.extend(rows),
                Err(error) if claimed.is_empty() => return Err(error),
                Err(error) => {
                    tracing::warn!(%error, rows = claimed.len(), "a claim broke off; handing over what was won");
                    break;
                }
            }
            if specs.is_empty() && !taken_in && claimed.len() < room as usize / 2 + 1 {
                taken_in = true;
                if backing.take_in(room).await? > 0 {
                    specs.push_back(spec);
                    continue;
                }
            }
            if specs.is_empty() && !runs_asked {
                runs_asked = true;
                specs.extend(self.behind(grant, &claimed, room)?);
            }
        }
        Ok(claimed)
    }

    /// With the order of keys kept: what stands behind the heads that were claimed.
    fn behind(&self, grant: &Grant, heads: &[Record], room: u32) -> Result<Vec<ClaimSpec>, StoreError> {
        let mapping = self.inner.backing.mapping();
        if !mapping.is_ordered_by_key || heads.is_empty() {
            return Ok(Vec::new());
        }
        let keys = mapping.keys_of(heads);
        if keys.is_empty() {
            return Ok(Vec::new());
        }
        mapping.behind(grant, self.inner.config.lease, &keys, room)
    }

    /// Takes note of what was claimed. What cannot be read, or was tried too often, is apart, with what is wrong with it.
    fn admit(
        &self,
        rows: Vec<Row>,
        grant: &Arc<Grant>,
        before: Instant,
        alone: bool,
    ) -> (Vec<Claimed>, Vec<(Key, Failure)>) {
        let inner = &self.inner;
        let deadline = inner.deadline_from(before);
        let (mut handed, mut wrong) = (Vec::with_capacity(rows.len()), Vec::new());
        let mut state = inner.state();
        let sizes = rows.iter().filter_map(|row| row.event.as_ref().ok()).map(|event| event.payload.len());
        state.saw_payloads(sizes);
        if alone && rows.is_empty() {
            state.has_suspects = false;
        }
        for row in rows {
            let event = match row.event {
                Ok(event) => event,
                Err(detail) => {
                    wrong.push((row.key, Failure::new(Cause::Corrupt, detail)));
                    continue;
                }
            };
            if row.attempts > row.attempts_max {
                let lost = format!("handed out {} times, and lost with its worker", row.attempts - 1);
                wrong.push((row.key, Failure::new(Cause::Crash, lost)));
                continue;
            }
            let number = state.add(Flying {
                key: row.key,
                grant: Arc::clone(grant),
                deadline,
                attempts: row.attempts,
                attempts_max: row.attempts_max,
                is_lost: false,
                is_settling: false,
                is_alone: alone,
            });
            let token = Token { worker: inner.id, lane: 0, epoch: number };
            handed.push(Claimed { event, token, deadline });
        }
        (handed, wrong)
    }

    async fn bury(&self, grant: &Grant, wrong: Vec<(Key, Failure)>) {
        for (key, failure) in wrong {
            tracing::warn!(cause = failure.cause.word(), error = failure.error, "a row is given up");
            let change = Change::Bury { failure };
            if let Err(error) = self.inner.backing.settle(grant, &[key], &change).await {
                // Its lease ends, and it is met again.
                tracing::warn!(%error, "a row could not be given up; trying again later");
            }
        }
    }

    /// What is to be written, and under which grant; and what was lost before.
    fn prepare(&self, outcomes: &[(Receipt, Outcome)]) -> (Vec<Batch>, Vec<i64>) {
        let mut state = self.inner.state();
        let mut batches: HashMap<(uuid::Uuid, Change), Batch> = HashMap::new();
        let mut lost = Vec::new();
        for (receipt, outcome) in outcomes {
            let number = receipt.token.epoch;
            let own = receipt.token.worker == self.inner.id;
            let Some(row) = state.flying.get_mut(&number).filter(|row| own && !row.is_lost) else {
                lost.push(number);
                continue;
            };
            row.is_settling = true;
            let change = change(row, outcome);
            let batch = batches.entry((row.grant.token, change.clone())).or_insert_with(|| Batch {
                grant: Arc::clone(&row.grant),
                change,
                rows: Vec::new(),
            });
            batch.rows.push((number, row.key.clone()));
        }
        (batches.into_values().collect(), lost)
    }

    fn finish(&self, batch: &Batch, answers: &[Answer], summary: &mut Summary) {
        let mut state = self.inner.state();
        for ((number, _), answer) in batch.rows.iter().zip(answers) {
            state.remove(*number);
            match answer {
                Answer::Applied => summary.applied += 1,
                Answer::Stale => {
                    summary.stale += 1;
                    state.stale.insert(*number);
                }
                Answer::Terminal | Answer::Missing => summary.missing += 1,
            }
        }
    }

    /// Gives back what is still in hand, so that others need not wait for its leases to end.
    async fn release_all(&self) -> Result<(), StoreError> {
        let held = self.inner.state().held();
        for Held { grant, rows } in held {
            let keys: Vec<Key> = rows.iter().map(|(_, key)| key.clone()).collect();
            self.inner.backing.settle(&grant, &keys, &Change::Release).await?;
            let mut state = self.inner.state();
            for (number, _) in rows {
                state.remove(number);
            }
        }
        Ok(())
    }
}

/// Rows of which the same becomes, under one grant.
struct Batch {
    grant: Arc<Grant>,
    change: Change,
    rows: Vec<(i64, Key)>,
}

fn change(row: &Flying, outcome: &Outcome) -> Change {
    match outcome {
        Outcome::Published => Change::Publish,
        Outcome::Release => Change::Release,
        Outcome::GiveUp { failure } => Change::Bury { failure: failure.clone() },
        Outcome::Retry { failure, .. } if row.attempts >= row.attempts_max => {
            Change::Bury { failure: failure.clone() }
        }
        Outcome::Retry { after, failure } => {
            Change::Retry { after: coarse(*after), failure: failure.clone() }
        }
    }
}

/// A little longer, so that rows that failed together are written together.
fn coarse(wait: Duration) -> Duration {
    let step = (wait / 16).max(Duration::from_millis(10)).as_millis().max(1).next_power_of_two();
    let steps = wait.as_millis().div_ceil(step);
    Duration::from_millis(u64::try_from(steps * step).unwrap_or(u64::MAX))
}

#[async_trait]
impl<B: Backing> Engine for RowWorker<B> {
    fn id(&self) -> WorkerId {
        self.inner.id
    }

    fn lanes(&self) -> Vec<Lane> {
        Vec::new()
    }

    fn deadline(&self, token: Token) -> Option<Instant> {
        let state = self.inner.state();
        match state.flying.get(&token.epoch) {
            Some(row) => Some(row.deadline).filter(|_| !row.is_lost),
            None if state.stale.contains(&token.epoch) => None,
            // It was settled: its time is over, and it was not lost.
            None => Some(self.inner.started),
        }
    }

    fn in_flight(&self) -> usize {
        self.inner.state().flying.len()
    }

    fn stats(&self) -> Stats {
        self.inner.state().stats
    }

    async fn claim(&self, limit: usize) -> Result<Vec<Claimed>, StoreError> {
        let _one = self.inner.claiming.lock().await;
        let Some((room, alone)) = self.room(limit) else { return Ok(Vec::new()) };
        let grant = Arc::new(self.inner.grant());
        let before = Instant::now();
        let records = self.claim_rows(&grant, room, alone).await?;
        let (backing, config) = (&self.inner.backing, &self.inner.config);
        let mut rows = match records.is_empty() {
            true => Vec::new(),
            false => backing.read(records, &config.target).await?,
        };
        let left = room.saturating_sub(rows.len() as u32);
        if backing.claims_new() && !alone && left > 0 {
            match backing.claim_new(&grant, config.lease, left, &config.target).await {
                Ok(new) => rows.extend(new),
                Err(error) if rows.is_empty() => return Err(error),
                Err(error) => tracing::warn!(%error, "a claim broke off; handing over what was won"),
            }
        }
        let (handed, wrong) = self.admit(rows, &grant, before, alone);
        self.bury(&grant, wrong).await;
        Ok(handed)
    }

    fn delivered(&self, _receipts: &[Receipt]) {}

    async fn settle(&self, outcomes: &[(Receipt, Outcome)]) -> Result<Summary, StoreError> {
        let (batches, lost) = self.prepare(outcomes);
        let mut summary = Summary { stale: lost.len(), ..Summary::default() };
        {
            let mut state = self.inner.state();
            state.stale = lost.iter().copied().collect();
            for number in lost {
                state.remove(number);
            }
        }
        let mut failed = None;
        for batch in batches {
            let keys: Vec<Key> = batch.rows.iter().map(|(_, key)| key.clone()).collect();
            match self.inner.backing.settle(&batch.grant, &keys, &batch.change).await {
                Ok(answers) => self.finish(&batch, &answers, &mut summary),
                Err(error) => {
                    let mut state = self.inner.state();
                    for (number, _) in &batch.rows {
                        if let Some(row) = state.flying.get_mut(number) {
                            row.is_settling = false;
                        }
                    }
                    failed = Some(error);
                }
            }
        }
        let mut state = self.inner.state();
        state.stats.applied += summary.applied as u64;
        state.stats.stale += summary.stale as u64;
        state.stats.missing += summary.missing as u64;
        failed.map_or(Ok(summary), Err)
    }

    async fn note_sink(&self, _down: Option<&str>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn stop(&self, grace: Duration) -> Result<Stats, StoreError> {
        self.inner.state().is_stopping = true;
        // A claim that is under way ends first: it may be handing out.
        drop(self.inner.claiming.lock().await);
        let until = Instant::now() + grace;
        while self.in_flight() > 0 && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        self.end_keeper();
        self.release_all().await?;
        Ok(self.stats())
    }
}

impl<B: Backing> Drop for RowWorker<B> {
    fn drop(&mut self) {
        self.end_keeper();
    }
}
