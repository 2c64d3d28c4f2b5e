//! Leases of rows, on the claim primitive and nothing else: claim, renew, settle.

use std::collections::HashSet;
use std::sync::OnceLock;
use std::time::Duration;

use uuid::Uuid;

use super::mapping::{ClaimColumns, Mapping, Stamp};
use super::table::RowTable;
use crate::claim::{ClaimSpec, ClaimSpecBuilder, Key, Predicate, Record, Value, col, now, now_plus};
use crate::error::{StoreError, StoreErrorKind};
use crate::outbox::Failure;

/// A row that was handed out so often and whose worker was lost is tried alone: what was in hand with it is not to run out of attempts with it.
pub(super) const SUSPECT: i64 = 2;

/// The longest part of an owner's text that is the worker's name: with the token it fits into 64 characters.
const NAME_CHARS_MAX: usize = 31;

/// Rows that are named in one claim: below every database's limit of bound values.
const ROWS_PER_CLAIM: usize = 500;

/// So often a row that is ours and does not come back is tried again: somebody has it locked.
const TRIES: u32 = 100;

/// What one claim writes: who, under which proof.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grant {
    pub(super) owner: String,
    pub(super) token: Uuid,
    /// The rows that were claimed in one bundle.
    pub(super) bundle: OnceLock<HashSet<Vec<u8>>>,
}

impl Grant {
    /// A new one, under a token of its own.
    pub(super) fn new(name: &str, worker: Uuid, has_token_column: bool) -> Self {
        let token = Uuid::new_v4();
        let name: String = name.chars().filter(|letter| !letter.is_control()).take(NAME_CHARS_MAX).collect();
        // Without a column for it the token is part of the owner, which is then as new as the claim is.
        let mark = if has_token_column { worker } else { token };
        Self { owner: format!("{name}#{}", mark.simple()), token, bundle: OnceLock::new() }
    }
}

/// What became of the settlement of one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Written.
    Applied,
    /// The lease was lost: another has the row, or had it since. Nothing was changed.
    Stale,
    /// It was published or given up before. Nothing was changed.
    Terminal,
    /// The row is not there any more.
    Missing,
}

/// What becomes of rows.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Change {
    Publish,
    Retry { after: Duration, failure: Failure },
    Bury { failure: Failure },
    Release,
}

impl Mapping {
    pub(super) fn claim_columns(&self) -> Result<&ClaimColumns, StoreError> {
        self.claim.as_ref().ok_or_else(|| {
            let detail =
                "the mapping has no columns for claims; name them, or keep the claims in a side table";
            StoreError::rejected("map", self.table.to_string(), detail)
        })
    }

    fn of_table(&self) -> Predicate {
        let wanted = self.filter.iter().map(|(column, value)| col(column).eq(value.clone()));
        Predicate::And(wanted.collect())
    }

    /// Rows of one status word that are due and that nobody has.
    fn free(&self, claim: &ClaimColumns, word: &Value) -> Predicate {
        let is_free = |column: &str| col(column).is_null().or(col(column).le(now()));
        let mut parts = vec![col(&claim.status).eq(word.clone())];
        parts.extend(self.filter.iter().map(|(column, value)| col(column).eq(value.clone())));
        parts.push(is_free(&claim.lease_end));
        if let Some(due) = &claim.due {
            parts.push(is_free(due));
        }
        Predicate::And(parts)
    }

    /// Its worker was lost, not for the first time: it is tried alone.
    fn is_suspect(claim: &ClaimColumns) -> Predicate {
        col(&claim.owner).is_not_null().and(col(&claim.attempts).ge(SUSPECT))
    }

    fn is_no_suspect(claim: &ClaimColumns) -> Predicate {
        let few = col(&claim.attempts).is_null().or(col(&claim.attempts).lt(SUSPECT));
        col(&claim.owner).is_null().or(few)
    }

    /// Rows that are still to be delivered, whoever has them.
    fn open(&self, claim: &ClaimColumns) -> Predicate {
        self.of_table().and(col(&claim.status).is_in(claim.words.open().cloned()))
    }

    fn ordered(&self, mut spec: ClaimSpecBuilder) -> ClaimSpecBuilder {
        for (column, direction) in &self.order {
            spec = spec.order_by_with(column, *direction, crate::claim::Nulls::Native);
        }
        if self.is_ordered_by_key { spec.order_by(&self.id) } else { spec }
    }

    /// The order of a key's rows; every two of them differ in it.
    fn places(&self) -> impl Iterator<Item = &str> {
        self.order.iter().map(|(column, _)| column.as_str()).chain([self.id.as_str()])
    }

    /// With the order of keys kept: only the head of each.
    fn heads(&self, claim: &ClaimColumns, free: Predicate) -> Predicate {
        match &self.key {
            Some(key) if self.is_ordered_by_key => {
                free.and(Predicate::first_of(key, self.places(), self.open(claim)))
            }
            _ => free,
        }
    }

    fn stamped(spec: ClaimSpecBuilder, claim: &ClaimColumns) -> ClaimSpecBuilder {
        match &claim.stamp {
            Some(Stamp::Fresh(column)) => spec.set(column, Uuid::new_v4()),
            Some(Stamp::Counter(column)) => spec.add(column, 1),
            None => spec,
        }
    }

    fn lease(
        &self,
        claim: &ClaimColumns,
        grant: &Grant,
        lease: Duration,
        eligible: Predicate,
    ) -> ClaimSpecBuilder {
        let mut spec = ClaimSpec::on_table(self.table.clone()).eligible(eligible);
        if let Some(word) = &claim.words.processing {
            spec = spec.set(&claim.status, word.clone());
        }
        spec = spec.set(&claim.owner, grant.owner.as_str());
        if let Some(token) = &claim.token {
            spec = spec.set(token, grant.token);
        }
        spec = spec.set(&claim.lease_end, now_plus(lease)).add(&claim.attempts, 1);
        if let Some(column) = &claim.claimed_at {
            spec = spec.set(column, now());
        }
        self.ordered(Self::stamped(spec, claim))
    }

    /// The claims of a turn, as a worker of this name would make them: to be explained.
    ///
    /// # Errors
    /// `Rejected` if the mapping has no columns for claims, or bad names.
    pub fn claims_of_a_turn(
        &self,
        worker: &str,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<ClaimSpec>, StoreError> {
        let has_token = self.claim_columns()?.token.is_some();
        self.turns(&Grant::new(worker, Uuid::nil(), has_token), lease, limit)
    }

    /// The claims of a turn: one for each status word of what is still to be delivered, since an index that begins with the status serves each of them without a
    /// sort, and no index serves all of them together. Pending ones come first.
    pub(super) fn turns(
        &self,
        grant: &Grant,
        lease: Duration,
        limit: u32,
    ) -> Result<Vec<ClaimSpec>, StoreError> {
        let claim = self.claim_columns()?;
        let words = claim.words.open();
        words
            .map(|word| {
                let free = self.free(claim, word).and(Self::is_no_suspect(claim));
                self.lease(claim, grant, lease, self.heads(claim, free)).limit(limit).build()
            })
            .collect()
    }

    /// Rows behind the heads that were claimed: those of the same keys that nothing stands before but what this claim has.
    pub(super) fn behind(
        &self,
        grant: &Grant,
        lease: Duration,
        keys: &[Value],
        limit: u32,
    ) -> Result<Vec<ClaimSpec>, StoreError> {
        let (claim, Some(column)) = (self.claim_columns()?, &self.key) else { return Ok(Vec::new()) };
        let of_keys = col(column).is_in(keys.iter().cloned());
        let ours = self.is_held(claim, grant);
        let words = claim.words.open();
        words
            .map(|word| {
                let free = self.free(claim, word).and(Self::is_no_suspect(claim));
                // Whatever is in the way and is neither free now nor ours ends the run.
                let frees = claim.words.open().map(|word| self.free(claim, word)).collect();
                let blocks = self.open(claim).and(Predicate::Or(frees).not()).and(ours.clone().not());
                let first = Predicate::first_of(column, self.places(), blocks);
                self.lease(claim, grant, lease, free.and(of_keys.clone()).and(first)).limit(limit).build()
            })
            .collect()
    }

    /// One row whose workers were lost.
    pub(super) fn suspect(&self, grant: &Grant, lease: Duration) -> Result<Vec<ClaimSpec>, StoreError> {
        let claim = self.claim_columns()?;
        // A row that failed since has no owner, and one that is claimed has its own word, where there is one.
        let words = claim
            .words
            .open()
            .filter(|word| claim.words.processing.as_ref().is_none_or(|processing| processing == *word));
        words
            .map(|word| {
                let free = self.free(claim, word).and(Self::is_suspect(claim));
                self.lease(claim, grant, lease, self.heads(claim, free)).limit(1).build()
            })
            .collect()
    }

    /// Claimed under this grant.
    fn is_held(&self, claim: &ClaimColumns, grant: &Grant) -> Predicate {
        let is_claimed = match &claim.words.processing {
            Some(word) => col(&claim.status).eq(word.clone()),
            // It keeps the word that it had.
            None => col(&claim.status).is_in(claim.words.open().cloned()),
        };
        let mut parts = vec![is_claimed, col(&claim.owner).eq(grant.owner.as_str())];
        parts.extend(claim.token.as_ref().map(|token| col(token).eq(grant.token)));
        Predicate::And(parts)
    }

    fn named(&self, rows: &[Key]) -> Predicate {
        col(&self.id).is_in(rows.iter().filter_map(|row| row.0.first().cloned()))
    }

    fn on_held(&self, claim: &ClaimColumns, grant: &Grant, rows: &[Key]) -> ClaimSpecBuilder {
        // By the key: it is what finds them, and on MariaDB it is the index that is forced.
        let spec = ClaimSpec::on_table(self.table.clone()).order_by(&self.id);
        spec.eligible(self.named(rows).and(self.is_held(claim, grant))).limit(rows.len() as u32)
    }

    /// Prolongs the leases of these rows.
    pub(super) fn renewal(
        &self,
        grant: &Grant,
        lease: Duration,
        rows: &[Key],
    ) -> Result<ClaimSpec, StoreError> {
        let claim = self.claim_columns()?;
        Self::stamped(self.on_held(claim, grant, rows).set(&claim.lease_end, now_plus(lease)), claim).build()
    }

    /// Writes what became of these rows.
    pub(super) fn settlement(
        &self,
        grant: &Grant,
        rows: &[Key],
        change: &Change,
    ) -> Result<ClaimSpec, StoreError> {
        let claim = self.claim_columns()?;
        let words = &claim.words;
        let mut spec = self.on_held(claim, grant, rows).set(&claim.owner, Value::Null);
        if let Some(token) = &claim.token {
            spec = spec.set(token, Value::Null);
        }
        let set = |spec: ClaimSpecBuilder, column: &Option<String>, value: Value| match column {
            Some(column) => spec.set(column, value),
            None => spec,
        };
        let mut lease_end = Value::Null;
        // Counted when it was claimed: what was delivered, and what was not tried, has not failed.
        let gives_back = matches!(change, Change::Publish | Change::Release);
        spec = match change {
            Change::Publish => {
                let spec = spec.set(&claim.status, words.published.clone());
                let spec = set(spec, &claim.error, Value::Null);
                set(spec, &claim.published_at, now())
            }
            Change::Release => spec.set(&claim.status, words.pending.clone()),
            Change::Bury { failure } => {
                let spec = spec.set(&claim.status, words.dead.clone());
                set(spec, &claim.error, claim.error_value(failure))
            }
            Change::Retry { after, failure } => {
                let waits = words.failed.as_ref().unwrap_or(&words.pending);
                let spec = spec.set(&claim.status, waits.clone());
                if claim.due.is_none() {
                    lease_end = now_plus(*after);
                }
                let spec = set(spec, &claim.due, now_plus(*after));
                set(spec, &claim.error, claim.error_value(failure))
            }
        };
        spec = spec.set(&claim.lease_end, lease_end);
        if gives_back {
            spec = spec.add(&claim.attempts, -1);
        }
        Self::stamped(spec, claim).build()
    }

    /// Looks for rows by their keys.
    fn lookup(&self, rows: &[Key], more: Predicate) -> Result<ClaimSpec, StoreError> {
        let claim = self.claim_columns()?;
        let spec = ClaimSpec::on_table(self.table.clone()).eligible(self.named(rows).and(more));
        // Only ever given to `find`, which writes nothing.
        spec.set(&claim.status, claim.words.pending.clone())
            .order_by(&self.id)
            .limit(rows.len() as u32)
            .build()
    }
}

impl ClaimColumns {
    fn error_value(&self, failure: &Failure) -> Value {
        match self.error_is_json {
            true => {
                Value::Json(serde_json::json!({ "cause": failure.cause.word(), "message": failure.error }))
            }
            false => Value::Text(failure.error.clone()),
        }
    }
}

/// Writes what became of rows that were claimed under one grant. Rows that do not come back are looked up.
pub(super) async fn settle<T: RowTable>(
    table: &T,
    mapping: &Mapping,
    grant: &Grant,
    rows: &[Key],
    change: &Change,
) -> Result<Vec<Answer>, StoreError> {
    let mut answers = Vec::with_capacity(rows.len());
    for rows in rows.chunks(ROWS_PER_CLAIM) {
        answers.extend(settle_some(table, mapping, grant, rows, change).await?);
    }
    Ok(answers)
}

async fn settle_some<T: RowTable>(
    table: &T,
    mapping: &Mapping,
    grant: &Grant,
    rows: &[Key],
    change: &Change,
) -> Result<Vec<Answer>, StoreError> {
    let mut applied = HashSet::new();
    let mut rest: Vec<Key> = rows.to_vec();
    for turn in 0..TRIES {
        let written = table.claim(&mapping.settlement(grant, &rest, change)?).await?;
        applied.extend(keys(mapping, &written)?);
        rest.retain(|row| !applied.contains(&row.to_bytes()));
        if rest.is_empty() {
            return Ok(vec![Answer::Applied; rows.len()]);
        }
        let claim = mapping.claim_columns()?;
        let ours = table.find(&mapping.lookup(&rest, mapping.is_held(claim, grant))?).await?;
        if ours.is_empty() {
            break;
        }
        if turn + 1 == TRIES {
            let detail = "rows that are claimed here stay locked by another session; what holds them?";
            return Err(StoreError::new(
                StoreErrorKind::Contended,
                "settle",
                mapping.table.to_string(),
                detail,
            ));
        }
        // Somebody has them locked, and a claim steps over what is.
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let claim = mapping.claim_columns()?;
    let bytes = |rows: Vec<Key>| rows.iter().map(Key::to_bytes).collect::<HashSet<_>>();
    let there = bytes(table.find(&mapping.lookup(&rest, Predicate::always())?).await?);
    let ended = col(&claim.status).is_in([claim.words.published.clone(), claim.words.dead.clone()]);
    let ended = bytes(table.find(&mapping.lookup(&rest, ended)?).await?);
    let answer = |row: &Key| match row.to_bytes() {
        row if applied.contains(&row) => Answer::Applied,
        row if ended.contains(&row) => Answer::Terminal,
        row if there.contains(&row) => Answer::Stale,
        _ => Answer::Missing,
    };
    Ok(rows.iter().map(answer).collect())
}

/// Prolongs leases; which of the rows are still held.
pub(super) async fn renew<T: RowTable>(
    table: &T,
    mapping: &Mapping,
    grant: &Grant,
    lease: Duration,
    rows: &[Key],
) -> Result<HashSet<Vec<u8>>, StoreError> {
    let mut held = HashSet::new();
    for rows in rows.chunks(ROWS_PER_CLAIM) {
        let renewed = table.claim(&mapping.renewal(grant, lease, rows)?).await?;
        held.extend(keys(mapping, &renewed)?);
        let rest: Vec<Key> = rows.iter().filter(|row| !held.contains(&row.to_bytes())).cloned().collect();
        if !rest.is_empty() {
            // Locked by somebody and so stepped over, or lost.
            let claim = mapping.claim_columns()?;
            let ours = table.find(&mapping.lookup(&rest, mapping.is_held(claim, grant))?).await?;
            held.extend(ours.iter().map(Key::to_bytes));
        }
    }
    Ok(held)
}

fn keys(mapping: &Mapping, records: &[Record]) -> Result<Vec<Vec<u8>>, StoreError> {
    records.iter().map(|record| mapping.key_of(record).map(|key| key.to_bytes())).collect()
}
