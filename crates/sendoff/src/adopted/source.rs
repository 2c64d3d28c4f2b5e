//! An adopted table as a source of claims.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::time::Instant;
use uuid::Uuid;

use super::backing::{Backing, Own};
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
use super::check::Misfit;
use super::inspect::{self, Listing, RowState};
use super::leases::{Answer, Change, Grant};
use super::mapping::Mapping;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
use super::side::{self, Beside, Side};
use super::table::RowTable;
use super::worker::RowWorker;
use super::{check, inspect::Claim};
use crate::claim::{Claimable as _, Key, Record, Timestamp, Value};
use crate::error::StoreError;
use crate::outbox::{Engine, EventState, Outcome, Source, WorkerConfig};
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
use crate::stores::sql::SqlDatabase;

/// A host's own outbox table, claimed by rows.
#[derive(Debug, Clone)]
pub struct Adopted {
    rows: Arc<dyn Rows>,
}

/// What can be done with a table, whatever its store.
#[async_trait]
trait Rows: fmt::Debug + Send + Sync {
    fn start(&self, config: WorkerConfig) -> Result<Box<dyn Engine>, StoreError>;
    fn narrowed(&self, column: &str, value: Value) -> Result<Arc<dyn Rows>, StoreError>;
    /// What the host's columns mean.
    fn mapping(&self) -> &Mapping;
    /// What those of its claims mean.
    fn claims_mapping(&self) -> &Mapping;
    async fn list(&self, state: RowState, limit: u32) -> Result<Vec<Listing>, StoreError>;
    async fn standing(
        &self,
        state: EventState,
        one: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Listing>, StoreError>;
    async fn counted(&self, state: EventState, most: u32) -> Result<u64, StoreError>;
    async fn oldest(&self) -> Result<Option<Timestamp>, StoreError>;
    async fn claim(&self, grant: &Grant, limit: u32, lease: Duration) -> Result<Vec<Claim>, StoreError>;
    async fn settle(&self, grant: &Grant, rows: &[Key], change: &Change) -> Result<Vec<Answer>, StoreError>;
}

/// A table that has columns for claims.
#[derive(Debug, Clone)]
struct OwnRows<T>(Arc<Own<T>>);

#[async_trait]
impl<T: RowTable + Clone> Rows for OwnRows<T> {
    fn start(&self, config: WorkerConfig) -> Result<Box<dyn Engine>, StoreError> {
        Ok(Box::new(RowWorker::start(Arc::clone(&self.0), config)?))
    }

    fn narrowed(&self, column: &str, value: Value) -> Result<Arc<dyn Rows>, StoreError> {
        let mapping = self.0.mapping.clone().only(column, value);
        let (table, seen) = (self.0.table.clone(), self.0.seen.clone());
        Ok(Arc::new(Self(Arc::new(Own { table, seen, mapping }))))
    }

    fn mapping(&self) -> &Mapping {
        &self.0.mapping
    }

    fn claims_mapping(&self) -> &Mapping {
        &self.0.mapping
    }

    async fn list(&self, state: RowState, limit: u32) -> Result<Vec<Listing>, StoreError> {
        let records = inspect::rows(&self.0.table, &self.0.mapping, state, limit).await?;
        let rows = records.iter().map(|record| self.0.mapping.read(record, None, ""));
        rows.map(|row| row.map(Listing::from)).collect()
    }

    async fn standing(
        &self,
        state: EventState,
        one: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Listing>, StoreError> {
        let Own { seen, mapping, .. } = &*self.0;
        let id = one.and_then(|id| inspect::id_of(seen, mapping, id));
        if one.is_some() && id.is_none() {
            return Ok(Vec::new());
        }
        let records = inspect::standing(seen, mapping, state, id.as_ref(), limit).await?;
        let listing = |record: &Record| {
            let mut listing = Listing::from(mapping.read(record, None, "")?);
            mapping.told(record, &mut listing);
            Ok(listing)
        };
        records.iter().map(listing).collect()
    }

    async fn counted(&self, state: EventState, most: u32) -> Result<u64, StoreError> {
        inspect::counted(&self.0.table, &self.0.mapping, state, most).await
    }

    async fn oldest(&self) -> Result<Option<Timestamp>, StoreError> {
        inspect::oldest(&self.0.table, &self.0.mapping).await
    }

    async fn claim(&self, grant: &Grant, limit: u32, lease: Duration) -> Result<Vec<Claim>, StoreError> {
        claim_turn(&*self.0, grant, limit, lease).await
    }

    async fn settle(&self, grant: &Grant, rows: &[Key], change: &Change) -> Result<Vec<Answer>, StoreError> {
        Backing::settle(&*self.0, grant, rows, change).await
    }
}

/// Claims that are kept beside a table.
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
#[derive(Debug)]
struct SideRows<D: SqlDatabase>(Arc<Side<D>>);

#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
#[async_trait]
impl<D> Rows for SideRows<D>
where
    D: SqlDatabase,
    D::Lanes: RowTable,
{
    fn start(&self, config: WorkerConfig) -> Result<Box<dyn Engine>, StoreError> {
        Ok(Box::new(RowWorker::start(Arc::clone(&self.0), config)?))
    }

    fn narrowed(&self, column: &str, value: Value) -> Result<Arc<dyn Rows>, StoreError> {
        Ok(Arc::new(Self(Arc::new(self.0.only(column, value)?))))
    }

    fn mapping(&self) -> &Mapping {
        self.0.host_mapping()
    }

    fn claims_mapping(&self) -> &Mapping {
        self.0.mapping()
    }

    async fn list(&self, state: RowState, limit: u32) -> Result<Vec<Listing>, StoreError> {
        let mut records = inspect::rows(self.0.claims(), self.0.mapping(), state, limit).await?;
        let lasts = match state {
            RowState::Processing => Some(true),
            RowState::Expired | RowState::Unprocessed => Some(false),
            RowState::Failed | RowState::Dead | RowState::Published => None,
        };
        if let Some(lasts) = lasts {
            let left = limit.saturating_sub(records.len() as u32);
            records.extend(self.0.bundled(lasts, None, left).await?);
        }
        let (rows, _) = self.0.events(&records, "").await?;
        Ok(rows.into_iter().map(Listing::from).collect())
    }

    async fn standing(
        &self,
        state: EventState,
        one: Option<Uuid>,
        limit: u32,
    ) -> Result<Vec<Listing>, StoreError> {
        self.0.standing(state, one, limit).await
    }

    async fn counted(&self, state: EventState, most: u32) -> Result<u64, StoreError> {
        self.0.counted(state, most).await
    }

    async fn oldest(&self) -> Result<Option<Timestamp>, StoreError> {
        self.0.oldest().await
    }

    async fn claim(&self, grant: &Grant, limit: u32, lease: Duration) -> Result<Vec<Claim>, StoreError> {
        claim_turn(&*self.0, grant, limit, lease).await
    }

    async fn settle(&self, grant: &Grant, rows: &[Key], change: &Change) -> Result<Vec<Answer>, StoreError> {
        Backing::settle(&*self.0, grant, rows, change).await
    }
}

/// All claims of one turn, by hand.
async fn claim_turn<B: Backing>(
    backing: &B,
    grant: &Grant,
    limit: u32,
    lease: Duration,
) -> Result<Vec<Claim>, StoreError> {
    if !backing.claims_new() {
        backing.take_in(limit).await?;
    }
    backing.return_lost().await?;
    let mut records = Vec::new();
    for spec in backing.mapping().turns(grant, lease, limit)? {
        let left = limit.saturating_sub(records.len() as u32);
        records.extend(backing.claims().claim(&spec.with_limit(left)).await?);
    }
    let mut rows = backing.read(records, "").await?;
    let left = limit.saturating_sub(rows.len() as u32);
    if backing.claims_new() && left > 0 {
        rows.extend(backing.claim_new(grant, lease, left, "").await?);
    }
    Ok(rows.into_iter().map(Claim::from).collect())
}

/// Rows that were claimed together, with the proof of it.
#[derive(Debug)]
pub struct Batch {
    grant: Grant,
    /// The rows.
    pub rows: Vec<Claim>,
    /// By this process's monotonic clock: nothing of it may be published after this.
    pub deadline: Instant,
}

impl Batch {
    /// What the table has as the owner of these rows.
    pub fn owner(&self) -> &str {
        &self.grant.owner
    }
}

impl Adopted {
    /// Opens a table that has columns for claims, after checking that the mapping fits it.
    ///
    /// # Errors
    /// `Schema` if a column is missing or of a wrong type, if the id is not unique, or if no index serves the claim, with the statement that mends it.
    #[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
    pub async fn open<D>(database: &D, mapping: Mapping) -> Result<Self, StoreError>
    where
        D: SqlDatabase,
        D::Lanes: RowTable,
    {
        let table = check::open(database, &mapping).await?;
        check::fits(&table, &mapping).await?;
        let seen = database.open_lanes(mapping.operators_description()?).await?;
        Ok(Self { rows: Arc::new(OwnRows(Arc::new(Own { table, seen, mapping }))) })
    }

    /// Takes a table that a store has open.
    ///
    /// # Errors
    /// As `open`.
    pub async fn over<T: RowTable + Clone>(table: T, mapping: Mapping) -> Result<Self, StoreError> {
        check::fits(&table, &mapping).await?;
        Ok(Self { rows: Arc::new(OwnRows(Arc::new(Own { seen: table.clone(), table, mapping }))) })
    }

    /// Opens a table whose claims are kept beside it, after checking that the mapping fits. What the host's table does not have is not needed of it.
    ///
    /// # Errors
    /// `Schema` if a column is missing, if the id is not unique, or if the table beside it is not there, with the statements that make it.
    #[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
    pub async fn beside<D>(database: &D, mapping: Mapping, beside: &Beside) -> Result<Self, StoreError>
    where
        D: SqlDatabase,
        D::Lanes: RowTable,
    {
        let side = Side::open(database, mapping, beside).await?;
        Ok(Self { rows: Arc::new(SideRows(Arc::new(side))) })
    }

    /// Makes the table beside a host's, if it is not there. It is safe to run again.
    ///
    /// # Errors
    /// `Schema` if the host's table is not as it must be; as the store's.
    #[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
    pub async fn make_beside<D>(database: &D, mapping: &Mapping, beside: &Beside) -> Result<(), StoreError>
    where
        D: SqlDatabase,
        D::Lanes: RowTable,
    {
        let script = side::script(database, mapping, beside).await?;
        database.run_schema(&beside.table.to_string(), &script).await
    }

    /// The statements by which [`make_beside`](Self::make_beside) makes it, for those who run their migrations themselves.
    ///
    /// # Errors
    /// As `make_beside`.
    #[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
    pub async fn beside_script<D>(
        database: &D,
        mapping: &Mapping,
        beside: &Beside,
    ) -> Result<String, StoreError>
    where
        D: SqlDatabase,
        D::Lanes: RowTable,
    {
        side::script(database, mapping, beside).await
    }

    /// Whether the table beside a host's is there.
    ///
    /// # Errors
    /// As the store's.
    #[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
    pub async fn has_beside<D>(database: &D, mapping: &Mapping, beside: &Beside) -> Result<bool, StoreError>
    where
        D: SqlDatabase,
        D::Lanes: RowTable,
    {
        Ok(side::known(database, mapping, beside).await?.is_some())
    }

    /// What keeps a mapping from fitting its table, each with the statement that mends it; none: it can be opened. Reads only.
    ///
    /// # Errors
    /// `Schema` if there is no such table or its id is not unique, with what to do; `Rejected` if the mapping contradicts itself.
    #[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
    pub async fn misfits<D>(
        database: &D,
        mapping: &Mapping,
        beside: Option<&Beside>,
    ) -> Result<Vec<Misfit>, StoreError>
    where
        D: SqlDatabase,
        D::Lanes: RowTable,
    {
        match beside {
            Some(beside) => side::misfits(database, mapping, beside).await,
            None => check::misfits(database, mapping).await,
        }
    }

    /// The same table, with only those rows that have this value in this column.
    ///
    /// # Errors
    /// `Rejected` for a bad name.
    pub fn only(&self, column: &str, value: impl Into<Value>) -> Result<Self, StoreError> {
        Ok(Self { rows: self.rows.narrowed(column, value.into())? })
    }

    /// What its columns mean.
    pub fn mapping(&self) -> &Mapping {
        self.rows.mapping()
    }

    /// The first rows in a state. Reads only. Where claims are kept beside the table it is what is known there: neither what has not been taken in, nor what has left
    /// again.
    ///
    /// # Errors
    /// As the store's.
    pub async fn list(&self, state: RowState, limit: u32) -> Result<Vec<Listing>, StoreError> {
        self.rows.list(state, limit).await
    }

    /// The first rows that stand so, as an operator counts them: each row is in one state alone. Reads only. What has not been taken in beside the table is
    /// unprocessed.
    ///
    /// # Errors
    /// As the store's.
    pub async fn standing(&self, state: EventState, limit: u32) -> Result<Vec<Listing>, StoreError> {
        self.rows.standing(state, None, limit).await
    }

    /// The row of this id, if it stands so. None as well where the host's ids are no UUIDs.
    ///
    /// # Errors
    /// As the store's.
    pub(super) async fn find(&self, id: Uuid, state: EventState) -> Result<Option<Listing>, StoreError> {
        Ok(self.rows.standing(state, Some(id), 1).await?.pop())
    }

    /// How many rows stand so, no further than `most`. Reads only. Where claims are kept beside the table, those that wait are not counted again before ten times as long has passed as
    /// counting them took: it looks at all there are.
    ///
    /// # Errors
    /// As the store's.
    pub async fn counted(&self, state: EventState, most: u32) -> Result<u64, StoreError> {
        self.rows.counted(state, most).await
    }

    /// When the oldest row that is to be delivered was written, as far as a column says so. Reads only.
    ///
    /// # Errors
    /// As the store's.
    pub async fn oldest(&self) -> Result<Option<Timestamp>, StoreError> {
        self.rows.oldest().await
    }

    /// Claims up to `limit` rows by hand, without a worker: nobody renews their leases. `worker` is who has them, for people to read.
    ///
    /// # Errors
    /// As the store's.
    pub async fn claim_batch(&self, worker: &str, limit: u32, lease: Duration) -> Result<Batch, StoreError> {
        let has_token = self.rows.claims_mapping().claim_columns()?.token.is_some();
        let grant = Grant::new(worker, Uuid::new_v4(), has_token);
        let before = Instant::now();
        let rows = self.rows.claim(&grant, limit, lease).await?;
        Ok(Batch { grant, rows, deadline: before + lease - lease / 10 })
    }

    /// Says what became of some rows of a batch, and how that went with each.
    ///
    /// # Errors
    /// As the store's; whether it was written is then unknown, and it is safe to say it again.
    pub async fn settle_batch(
        &self,
        batch: &Batch,
        rows: &[Key],
        outcome: &Outcome,
    ) -> Result<Vec<Answer>, StoreError> {
        let change = match outcome {
            Outcome::Published => Change::Publish,
            Outcome::Release => Change::Release,
            Outcome::GiveUp { failure } => Change::Bury { failure: failure.clone() },
            Outcome::Retry { after, failure } => Change::Retry { after: *after, failure: failure.clone() },
        };
        self.rows.settle(&batch.grant, rows, &change).await
    }
}

#[async_trait]
impl Source for Adopted {
    async fn start(&self, config: WorkerConfig) -> Result<Box<dyn Engine>, StoreError> {
        self.rows.start(config)
    }
}
