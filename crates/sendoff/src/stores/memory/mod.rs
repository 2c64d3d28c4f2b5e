//! Tables in memory: the reference that the other stores are compared with, and enough for tests and
//! single processes.

mod adopted;
mod model;
mod outbox;
mod tasks;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

pub use self::outbox::{MemoryOutbox, MemoryTransaction};
pub use self::tasks::{MemoryTaskTransaction, MemoryTasks};

use self::model::Rows;
use crate::claim::{ClaimSpec, Claimable, FromRecord, Key, Record, Table, TableName, Timestamp, Value};
use crate::error::StoreError;

/// A database in memory with a clock of its own.
#[derive(Debug, Clone, Default)]
pub struct MemoryDatabase {
    shared: Arc<Mutex<Shared>>,
}

#[derive(Debug)]
struct Shared {
    tables: Vec<(TableName, Rows)>,
    /// What its clock showed at the beginning, and how far it was moved since.
    set_to: Timestamp,
    /// It runs with tokio's clock: where that one is virtual, leases end in virtual time too.
    began: Instant,
}

impl Default for Shared {
    fn default() -> Self {
        Self { tables: Vec::new(), set_to: Timestamp::from(SystemTime::now()), began: Instant::now() }
    }
}

impl MemoryDatabase {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes an empty table with these columns. Rows are told apart by the key of `table`.
    ///
    /// # Errors
    /// `Rejected` if the table is there already, or its description names other columns.
    pub fn create<R>(&self, table: Table, columns: &[&str]) -> Result<MemoryTable<R>, StoreError>
    where
        R: FromRecord,
    {
        let name = table.name().clone();
        let rows = Rows::new(table, columns)?;
        let mut shared = self.lock();
        if shared.tables.iter().any(|(existing, _)| *existing == name) {
            return Err(StoreError::rejected("create table", name.to_string(), "it is there already"));
        }
        shared.tables.push((name.clone(), rows));
        Ok(MemoryTable { database: self.clone(), name, row: std::marker::PhantomData })
    }

    /// Moves this database's clock forward.
    pub fn advance(&self, by: Duration) {
        let mut shared = self.lock();
        shared.set_to = after(shared.set_to, by);
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // A panic while it was held can only have been a broken invariant of one call; the
        // tables are whole between statements.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn now(&self) -> Timestamp {
        after(self.set_to, self.began.elapsed())
    }

    fn rows(&mut self, name: &TableName) -> &mut Rows {
        let found = self.tables.iter_mut().find(|(existing, _)| existing == name);
        let Some((_, rows)) = found else { unreachable!("tables are never dropped") };
        rows
    }
}

fn after(moment: Timestamp, wait: Duration) -> Timestamp {
    let micros = i64::try_from(wait.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(moment.as_micros().saturating_add(micros))
}

/// A table of a [`MemoryDatabase`]. The default row type is [`Record`].
#[derive(Debug)]
pub struct MemoryTable<R = Record> {
    database: MemoryDatabase,
    name: TableName,
    row: std::marker::PhantomData<fn() -> R>,
}

impl<R> Clone for MemoryTable<R> {
    fn clone(&self) -> Self {
        Self { database: self.database.clone(), name: self.name.clone(), row: std::marker::PhantomData }
    }
}

impl<R> MemoryTable<R> {
    /// Adds rows; columns that are not named are NULL.
    ///
    /// # Errors
    /// `Rejected` for an unknown column or a key that is there already; then no row was added.
    pub fn insert(&self, rows: &[Vec<(&str, Value)>]) -> Result<(), StoreError> {
        let mut shared = self.database.lock();
        let now = shared.now();
        shared.rows(&self.name).insert(rows, now)
    }

    /// Every row, in key order.
    pub fn rows(&self) -> Vec<Record> {
        self.database.lock().rows(&self.name).all()
    }
}

impl<R> Claimable for MemoryTable<R>
where
    R: FromRecord + Send,
{
    type Id = Key;
    type Row = R;

    async fn find(&self, spec: &ClaimSpec) -> Result<Vec<Key>, StoreError> {
        let mut shared = self.database.lock();
        let now = shared.now();
        let rows = shared.rows(&self.name);
        rows.accepts(spec)?;
        let found = rows.find(spec, now)?;
        Ok(found.into_iter().map(|index| rows.key_at(index)).collect())
    }

    async fn claim_one(&self, spec: &ClaimSpec, id: &Key) -> Result<Option<R>, StoreError> {
        let chosen = |rows: &Rows, now: Timestamp| match rows.position(id) {
            Some(index) if rows.is_eligible(index, spec, now)? => Ok(vec![index]),
            _ => Ok(Vec::new()),
        };
        Ok(self.claim_chosen(spec, chosen)?.pop())
    }

    /// One lock is held across find and mark.
    async fn claim(&self, spec: &ClaimSpec) -> Result<Vec<R>, StoreError> {
        self.claim_chosen(spec, |rows, now| rows.find(spec, now))
    }
}

impl<R: FromRecord> MemoryTable<R> {
    /// Claims the rows that `choose` names, and returns them in that order.
    fn claim_chosen(
        &self,
        spec: &ClaimSpec,
        choose: impl FnOnce(&Rows, Timestamp) -> Result<Vec<usize>, StoreError>,
    ) -> Result<Vec<R>, StoreError> {
        let mut shared = self.database.lock();
        let now = shared.now();
        let rows = shared.rows(&self.name);
        rows.accepts(spec)?;
        let chosen = choose(rows, now)?;
        if spec.removes() {
            // Read before they go: what cannot be read stays.
            let read = chosen.iter().map(|&index| R::from_record(rows.at(index)));
            let read = read.collect::<Result<Vec<_>, _>>()?;
            rows.remove(chosen);
            return Ok(read);
        }
        let marked = chosen.into_iter().map(|index| rows.mark(index, spec, now));
        let marked = marked.collect::<Result<Vec<_>, _>>()?;
        drop(shared);
        marked.into_iter().map(R::from_record).collect()
    }
}
