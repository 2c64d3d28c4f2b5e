//! What a relay would deliver, looked at without a claim: a role that may only SELECT can do it.

use std::collections::{BTreeMap, HashSet};

use super::inspect::{self, Listing, RowState};
use super::mapping::Mapping;
use super::side::{self, Beside};
use super::source::Adopted;
use super::table::RowTable;
use crate::claim::{Key, Predicate, Record, Timestamp, col};
use crate::error::StoreError;
use crate::event::PAYLOAD_BYTES_MAX;
use crate::stores::sql::SqlDatabase;

/// So many rows are in memory at a time.
const PAGE: u32 = 500;

/// So many reasons are told apart; what comes after is counted together.
const REASONS_MAX: usize = 20;

/// What a relay would deliver now, and what it would not.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Shadow {
    /// So many rows were looked at.
    pub examined: u64,
    /// These were all that wait.
    pub is_whole: bool,
    /// The first in the order in which they would be claimed.
    pub first: Vec<Listing>,
    /// How many would be delivered, by target and topic. The target is empty where no column says it.
    pub topics: BTreeMap<(String, String), u64>,
    /// How many would be given up, by what is wrong with them.
    pub refusals: BTreeMap<String, Refusal>,
    /// When the oldest of them was written, as far as a column says so.
    pub oldest: Option<Timestamp>,
    /// The payload bytes of all, and of the largest.
    pub bytes: u64,
    /// The largest payload, in bytes.
    pub bytes_max: u64,
    /// How many payloads are larger than [`PAYLOAD_BYTES_MAX`]; brokers may reject them.
    pub large: u64,
}

/// Rows that would be given up for one reason.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refusal {
    /// How many.
    pub rows: u64,
    /// The id of the first.
    pub first: String,
}

impl Shadow {
    fn add(&mut self, listing: &Listing, has_created: bool) {
        self.examined += 1;
        let event = match &listing.event {
            Ok(event) => event,
            Err(why) => {
                let is_known = self.refusals.contains_key(why) || self.refusals.len() < REASONS_MAX;
                let why = if is_known { why.as_str() } else { "for other reasons" };
                let refusal = self.refusals.entry(why.to_owned()).or_default();
                refusal.rows += 1;
                if refusal.rows == 1 {
                    refusal.first = listing.id();
                }
                return;
            }
        };
        let bytes = event.payload.len();
        self.bytes += bytes as u64;
        self.bytes_max = self.bytes_max.max(bytes as u64);
        self.large += u64::from(bytes > PAYLOAD_BYTES_MAX);
        if has_created {
            self.oldest = Some(self.oldest.map_or(event.created_at, |oldest| oldest.min(event.created_at)));
        }
        *self.topics.entry((event.target.clone(), event.topic.clone())).or_default() += 1;
    }
}

/// A table that is looked at, and what is known beside it.
struct Looked<'m, T> {
    table: T,
    mapping: &'m Mapping,
    beside: Option<(T, Mapping)>,
    /// Rows that are claimed together, beside the table.
    bundled: HashSet<Vec<u8>>,
}

impl<T: RowTable> Looked<'_, T> {
    /// Rows that could be claimed now, as far as the host's table says.
    fn waiting(&self) -> Predicate {
        match &self.mapping.claim {
            Some(claim) => self.mapping.is_in(claim, RowState::Unprocessed),
            None => self.mapping.chosen(Predicate::always()),
        }
    }

    /// Those of the host's rows that nobody has taken, as far as is known beside the table.
    async fn still_waiting(&self, rows: Vec<Record>) -> Result<Vec<Record>, StoreError> {
        let Some((claims, mapping)) = &self.beside else { return Ok(rows) };
        let ids: Vec<Key> = rows.iter().map(|row| self.mapping.key_of(row)).collect::<Result<_, _>>()?;
        let named = || col("id").is_in(ids.iter().filter_map(|id| id.0.first().cloned()));
        let find = async |wanted: Predicate| -> Result<HashSet<Vec<u8>>, StoreError> {
            let found = claims.find(&inspect::reading(mapping, wanted, PAGE)?).await?;
            Ok(found.iter().map(Key::to_bytes).collect())
        };
        let known = find(named()).await?;
        let free = mapping.is_in(mapping.claim_columns()?, RowState::Unprocessed);
        let free = find(named().and(free)).await?;
        let is_waiting = |id: &Key| {
            let id = id.to_bytes();
            !self.bundled.contains(&id) && (!known.contains(&id) || free.contains(&id))
        };
        Ok(rows.into_iter().zip(&ids).filter(|(_, id)| is_waiting(id)).map(|(row, _)| row).collect())
    }

    fn listings(&self, rows: &[Record]) -> Result<Vec<Listing>, StoreError> {
        let attempts = self.mapping.claim.is_none().then_some(0);
        rows.iter().map(|row| self.mapping.read(row, attempts, "").map(Listing::from)).collect()
    }

    /// By their ids, a page at a time.
    async fn page(&self, after: Option<&Key>) -> Result<(Vec<Record>, Option<Key>), StoreError> {
        let after = after.and_then(|id| id.0.first()).map(|id| col(&self.mapping.id).gt(id.clone()));
        let wanted = after.into_iter().fold(self.waiting(), Predicate::and);
        let by_id = self.mapping.clone().without_order().order_by(&self.mapping.id);
        let spec = inspect::reading(&by_id, wanted, PAGE)?;
        let all = self.table.read(&spec).await?;
        let is_full = all.len() == PAGE as usize;
        let last = all.last().filter(|_| is_full).map(|row| self.mapping.key_of(row)).transpose()?;
        Ok((all, last))
    }
}

impl Adopted {
    /// Looks at what a relay would deliver now: the first `first` rows in the order of their claims, and counts over about `most` rows that are read. It claims nothing, changes nothing, and needs no right but to read;
    /// the table beside the host's need not be there.
    ///
    /// # Errors
    /// `Schema` or `Rejected` if a column that is read is missing, or the id is not unique; as the store's.
    pub async fn shadow<D>(
        database: &D,
        mapping: &Mapping,
        beside: Option<&Beside>,
        first: u32,
        most: u64,
    ) -> Result<Shadow, StoreError>
    where
        D: SqlDatabase,
        D::Lanes: RowTable,
    {
        let table = database.open_lanes(mapping.description()?).await?;
        let bundled = match beside {
            Some(beside) => side::in_flight(database, mapping, beside).await?,
            None => HashSet::new(),
        };
        let beside = match beside {
            Some(beside) => {
                let claims = side::known(database, mapping, beside).await?;
                let own = beside.mapping(mapping)?;
                claims.map(|claims| (claims, own))
            }
            None => None,
        };
        let looked = Looked { table, mapping, beside, bundled };
        let rows = looked.table.read(&inspect::reading(mapping, looked.waiting(), PAGE)?).await?;
        let rows = looked.still_waiting(rows).await?;
        let mut shadow = Shadow { first: looked.listings(&rows)?, ..Shadow::default() };
        shadow.first.truncate(first as usize);
        let (mut after, mut read) = (None, 0);
        loop {
            let (rows, last) = looked.page(after.as_ref()).await?;
            read += rows.len() as u64;
            for listing in looked.listings(&looked.still_waiting(rows).await?)? {
                shadow.add(&listing, mapping.created.is_some());
            }
            after = last;
            shadow.is_whole = after.is_none();
            if shadow.is_whole || read >= most {
                return Ok(shadow);
            }
        }
    }
}
