//! What an operator sees of an adopted table. Nothing here writes.

use super::mapping::{ClaimColumns, Mapping};
use super::reading::Row;
use super::table::RowTable;
use crate::claim::{ClaimSpec, Key, Predicate, Record, Value, col, now};
use crate::error::StoreError;
use crate::event::Event;

/// Where a row stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowState {
    /// To be claimed now: pending, due again, or left behind by a worker whose lease has ended.
    Unprocessed,
    /// Claimed, and its lease lasts.
    Processing,
    /// It failed, and waits for its retry.
    Failed,
    /// Given up.
    Dead,
    /// Delivered.
    Published,
    /// Claimed, and its lease has ended: its worker was lost.
    Expired,
}

/// A row that was claimed by hand.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// What it is settled by.
    pub key: Key,
    /// Handed out so often, this time included.
    pub attempts: u32,
    /// The event, or why it cannot be read.
    pub event: Result<Event, String>,
}

/// A row as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// Its id.
    pub key: Key,
    /// Handed out so often, and not given back.
    pub attempts: u32,
    /// The event, or why it cannot be read.
    pub event: Result<Event, String>,
}

impl Mapping {
    fn is_in(&self, claim: &ClaimColumns, state: RowState) -> Predicate {
        let words = &claim.words;
        let status = |word: &Value| col(&claim.status).eq(word.clone());
        let open = || col(&claim.status).is_in(words.open().cloned());
        let is_past = |column: &str| col(column).is_null().or(col(column).le(now()));
        let lasts = || col(&claim.lease_end).gt(now());
        let has_owner = || col(&claim.owner).is_not_null();
        let waits = || match &claim.due {
            Some(due) => col(due).gt(now()),
            None => lasts().and(col(&claim.owner).is_null()),
        };
        let of_state = match state {
            RowState::Unprocessed => {
                let free = open().and(is_past(&claim.lease_end));
                claim.due.iter().fold(free, |free, due| free.and(is_past(due)))
            }
            RowState::Processing => open().and(has_owner()).and(lasts()),
            RowState::Expired => open().and(has_owner()).and(col(&claim.lease_end).le(now())),
            RowState::Failed => match &words.failed {
                Some(word) => status(word),
                None => status(&words.pending).and(waits()),
            },
            RowState::Dead => status(&words.dead),
            RowState::Published => status(&words.published),
        };
        self.filter.iter().fold(of_state, |all, (column, value)| all.and(col(column).eq(value.clone())))
    }
}

/// The first rows in a state, in the table's order.
pub(super) async fn rows<T: RowTable>(
    table: &T,
    mapping: &Mapping,
    state: RowState,
    limit: u32,
) -> Result<Vec<Record>, StoreError> {
    let claim = mapping.claim_columns()?;
    let mut spec = ClaimSpec::on_table(mapping.table.clone()).eligible(mapping.is_in(claim, state));
    // Only ever read by.
    spec = spec.set(&claim.status, claim.words.pending.clone()).limit(limit);
    for (column, direction) in &mapping.order {
        spec = spec.order_by_with(column, *direction, crate::claim::Nulls::Native);
    }
    table.read(&spec.build()?).await
}

impl From<Row> for Listing {
    fn from(row: Row) -> Self {
        Self { key: row.key, attempts: row.attempts, event: row.event }
    }
}

impl From<Row> for Claim {
    fn from(row: Row) -> Self {
        Self { key: row.key, attempts: row.attempts, event: row.event }
    }
}
