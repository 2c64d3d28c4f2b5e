//! What an operator sees of an adopted table. Nothing here writes.

use uuid::Uuid;

use super::mapping::{ClaimColumns, Mapping};
use super::reading::{Row, text};
use super::table::{Fit, RowTable};
use crate::claim::{ClaimSpec, Direction, Key, Nulls, Predicate, Record, Timestamp, Value, col, now};
use crate::error::StoreError;
use crate::event::Event;
use crate::outbox::EventState;

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
    /// Who has it, or had it last. None also where nobody asked.
    pub owner: Option<String>,
    /// When it is tried again, or its lease ends.
    pub due: Option<Timestamp>,
    /// What went wrong last.
    pub error: Option<String>,
}

impl Listing {
    /// Its id as people write it; bytes that are no text as hexadecimal digits.
    pub fn id(&self) -> String {
        let Some(id) = self.key.0.first() else { return String::new() };
        let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        match (text(id), id) {
            (Some(text), _) => text,
            (None, Value::Bytes(bytes)) => digits(bytes),
            (None, _) => String::new(),
        }
    }
}

impl Mapping {
    pub(super) fn is_in(&self, claim: &ClaimColumns, state: RowState) -> Predicate {
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
        self.chosen(of_state)
    }
}

/// Rows by a condition, in the table's order. Whatever it is given to only reads by it.
pub(super) fn reading(mapping: &Mapping, wanted: Predicate, limit: u32) -> Result<ClaimSpec, StoreError> {
    ordered_reading(mapping, wanted, &mapping.order, limit)
}

fn ordered_reading(
    mapping: &Mapping,
    wanted: Predicate,
    order: &[(String, Direction)],
    limit: u32,
) -> Result<ClaimSpec, StoreError> {
    // A claim sets something; this one is never made.
    let (column, value) = match &mapping.claim {
        Some(claim) => (&claim.status, claim.words.pending.clone()),
        None => (&mapping.payload, Value::Null),
    };
    let mut spec =
        ClaimSpec::on_table(mapping.table.clone()).eligible(wanted).set(column, value).limit(limit);
    for (column, direction) in order {
        spec = spec.order_by_with(column, *direction, Nulls::Native);
    }
    spec.build()
}

/// The first rows in a state, in the table's order.
pub(super) async fn rows<T: RowTable>(
    table: &T,
    mapping: &Mapping,
    state: RowState,
    limit: u32,
) -> Result<Vec<Record>, StoreError> {
    let claim = mapping.claim_columns()?;
    table.read(&reading(mapping, mapping.is_in(claim, state), limit)?).await
}

/// Rows by where they stand, all or one: every row is in one state alone.
pub(super) async fn standing<T: RowTable>(
    table: &T,
    mapping: &Mapping,
    state: EventState,
    one: Option<&Value>,
    limit: u32,
) -> Result<Vec<Record>, StoreError> {
    let stands = mapping.stands(mapping.claim_columns()?, state);
    let wanted = one.into_iter().fold(stands, |stands, id| stands.and(col(&mapping.id).eq(id.clone())));
    table.read(&reading(mapping, wanted, limit)?).await
}

/// The id of a row as its column has it; none if that holds no UUIDs.
pub(super) fn id_of<T: RowTable>(table: &T, mapping: &Mapping, id: Uuid) -> Option<Value> {
    let forms =
        [Value::Uuid(id), Value::Text(id.hyphenated().to_string()), Value::Bytes(id.as_bytes().to_vec())];
    forms.into_iter().find(|value| table.fit(&mapping.id, value) == Fit::Fits)
}

/// How many stand there, no further than `most`.
pub(super) async fn counted<T: RowTable>(
    table: &T,
    mapping: &Mapping,
    state: EventState,
    most: u32,
) -> Result<u64, StoreError> {
    let claim = mapping.claim_columns()?;
    table.count(&ordered_reading(mapping, mapping.stands(claim, state), &[], most)?).await
}

/// When the oldest row that is to be delivered was written, as far as a column says it. By an index where that begins with status and this column.
pub(super) async fn oldest<T: RowTable>(
    table: &T,
    mapping: &Mapping,
) -> Result<Option<Timestamp>, StoreError> {
    let (claim, Some(created)) = (mapping.claim_columns()?, &mapping.created) else { return Ok(None) };
    let order = [(created.clone(), Direction::Ascending)];
    let mut oldest = None;
    for word in claim.words.open() {
        let wanted = mapping.chosen(col(&claim.status).eq(word.clone()));
        let spec = ordered_reading(mapping, wanted, &order, 1)?;
        for record in table.read(&spec).await? {
            let at = record.get(created).and_then(|value| mapping.moment(created, value));
            oldest = [oldest, at].into_iter().flatten().min();
        }
    }
    Ok(oldest)
}

impl Mapping {
    /// With only those rows that the mapping is about.
    pub(super) fn chosen(&self, of_state: Predicate) -> Predicate {
        self.filter.iter().fold(of_state, |all, (column, value)| all.and(col(column).eq(value.clone())))
    }

    /// Rows that stand so, and not otherwise.
    fn stands(&self, claim: &ClaimColumns, state: EventState) -> Predicate {
        let words = &claim.words;
        let open = || col(&claim.status).is_in(words.open().cloned());
        let has_owner = || col(&claim.owner).is_not_null().and(col(&claim.lease_end).is_not_null());
        let is_free = || col(&claim.owner).is_null().or(col(&claim.lease_end).is_null());
        let until = claim.due.as_ref().unwrap_or(&claim.lease_end);
        // Written out, since the opposite of what is unknown is unknown too.
        let (waits, is_due) = (col(until).gt(now()), col(until).is_null().or(col(until).le(now())));
        let first = words.open().filter(|word| Some(*word) != words.failed.as_ref());
        let first = col(&claim.status).is_in(first.cloned());
        self.chosen(match state {
            EventState::Unprocessed => first.and(is_free()).and(is_due),
            EventState::Failed => {
                let waits = first.and(waits);
                let failed = words.failed.iter().map(|word| col(&claim.status).eq(word.clone()));
                failed.fold(waits, Predicate::or).and(is_free())
            }
            EventState::Processing => open().and(has_owner()).and(col(&claim.lease_end).gt(now())),
            EventState::Abandoned => open().and(has_owner()).and(col(&claim.lease_end).le(now())),
            EventState::Dead => col(&claim.status).eq(words.dead.clone()),
            EventState::Published => col(&claim.status).eq(words.published.clone()),
        })
    }

    /// What is known of a row's claim, where the record has it.
    pub(super) fn told(&self, record: &Record, listing: &mut Listing) {
        let Some(claim) = &self.claim else { return };
        let value = |column: &String| record.get(column).filter(|value| **value != Value::Null);
        let moment = |column: &String| value(column).and_then(|value| self.moment(column, value));
        listing.owner = value(&claim.owner).and_then(text);
        listing.due = claim.due.as_ref().and_then(moment).max(moment(&claim.lease_end));
        listing.error = claim.error.as_ref().and_then(value).and_then(text);
    }
}

impl From<Row> for Listing {
    fn from(row: Row) -> Self {
        Self { key: row.key, attempts: row.attempts, event: row.event, owner: None, due: None, error: None }
    }
}

impl From<Row> for Claim {
    fn from(row: Row) -> Self {
        Self { key: row.key, attempts: row.attempts, event: row.event }
    }
}
