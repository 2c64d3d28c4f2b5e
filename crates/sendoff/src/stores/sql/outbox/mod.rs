//! The outbox in SQL: one engine, and the statements it shares, for every dialect.
//!
//! What a dialect can do better it overrides; this is the floor, and correct everywhere.

mod cancel;
#[cfg(any(feature = "postgres", feature = "tokio-postgres", feature = "diesel-async"))]
mod columns;
mod counts;
mod diverted;
mod enqueue;
mod explain;
mod fetch;
mod host_session;
mod inspect;
mod listing;
mod migrate;
mod names;
mod note;
mod operate;
mod purge;
mod redrive;
mod rows;
mod settle;
mod store;
mod template;
mod transaction;

use std::collections::HashSet;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;

#[cfg(any(feature = "postgres", feature = "tokio-postgres", feature = "diesel-async"))]
pub(crate) use columns::EventColumns;
pub(crate) use enqueue::Script;
#[cfg(any(feature = "sqlite", feature = "mysql"))]
pub(crate) use enqueue::host_connection;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub(crate) use enqueue::host_read;
pub(crate) use enqueue::statements as enqueue_statements;
pub use enqueue::{HostConnection, Outbox};
#[cfg(feature = "postgres")]
pub(crate) use fetch::whole_fetch;
pub use host_session::HostSession;
#[cfg(any(feature = "postgres", feature = "sqlite", feature = "mysql"))]
pub(crate) use host_session::host_session;
pub(crate) use migrate::check as check_schema;
pub use migrate::{Migration, SCHEMA_VERSION, SchemaSet, SchemaState};
pub use names::Names;
pub(crate) use rows::RowReader;
#[cfg(feature = "postgres")]
pub(crate) use rows::{Faults, object_headers, without_unreadable_key};
#[cfg(feature = "postgres")]
pub(crate) use settle::is_plain;
#[cfg(feature = "postgres")]
pub(crate) use store::paused_name;
pub(crate) use template::{Arg, Templates, list};
pub(crate) use transaction::sql_transaction;

use super::{Aging, Dialect, Plan, Statement, retry};
use crate::claim::{ClaimSpec, Claimable, Record, Table, TableName, Value};
use crate::error::StoreError;

/// A database that an outbox can be kept in.
#[async_trait]
pub trait SqlDatabase: Clone + fmt::Debug + Send + Sync + 'static {
    /// A table of it whose rows are claimed: the lanes, what is purged, a host's own.
    type Lanes: Claimable<Row = Record> + Clone + fmt::Debug + Send + Sync;

    /// Its SQL.
    #[doc(hidden)]
    fn dialect(&self) -> Dialect;

    /// How long contention is retried.
    #[doc(hidden)]
    fn time_to_try(&self) -> Duration;

    /// How text is compared byte by byte, where that has a name.
    #[doc(hidden)]
    fn collation(&self) -> &'static str {
        ""
    }

    /// Opens a table whose rows are claimed.
    #[doc(hidden)]
    async fn open_lanes(&self, table: Table) -> Result<Self::Lanes, StoreError>;

    /// How it would find the rows of a claim.
    #[doc(hidden)]
    async fn explain_claim(&self, table: &Self::Lanes, spec: &ClaimSpec) -> Result<Plan, StoreError>;

    /// Begins a transaction that may write, at READ COMMITTED.
    #[doc(hidden)]
    async fn begin(&self, op: &'static str) -> Result<Box<dyn SqlTransaction>, StoreError>;

    /// Runs one statement by itself.
    #[doc(hidden)]
    async fn query(&self, op: &'static str, statement: &Statement) -> Result<Vec<Vec<Value>>, StoreError>;

    /// Runs statements, a transaction and all, as one text in one round trip; the rows of the last one. PostgreSQL's.
    #[doc(hidden)]
    async fn query_at_once(&self, op: &'static str, _script: &AtOnce) -> Result<Vec<Vec<Value>>, StoreError> {
        Err(StoreError::rejected(op, "database", "statements cannot be run as one text here"))
    }

    /// Whether what is prepared in a connection is there when the connection is used again.
    #[doc(hidden)]
    fn keeps_prepared(&self) -> bool {
        false
    }

    /// How it would run a statement.
    #[doc(hidden)]
    async fn explain(&self, statement: &Statement) -> Result<Plan, StoreError>;

    /// Runs a schema, in a transaction where the database has that for a schema, and never beside another run of itself.
    #[doc(hidden)]
    async fn run_schema(&self, lock: &str, script: &str) -> Result<(), StoreError>;
}

/// Statements that are sent as one text.
#[doc(hidden)]
#[derive(Debug)]
pub struct AtOnce {
    /// `PREPARE` for those that the text executes, which is run once in a connection, in this order.
    pub prepare: Vec<String>,
    /// All of them.
    pub text: String,
}

/// A transaction. Dropped, it is rolled back.
#[async_trait]
pub trait SqlTransaction: Send {
    /// Runs a statement and reads its rows.
    #[doc(hidden)]
    async fn query(&mut self, statement: &Statement) -> Result<Vec<Vec<Value>>, StoreError>;

    /// Runs a statement; how many rows it changed.
    #[doc(hidden)]
    async fn execute(&mut self, statement: &Statement) -> Result<u64, StoreError>;

    /// Commits.
    #[doc(hidden)]
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;

    /// Rolls back, so that the connection can be used again.
    #[doc(hidden)]
    async fn rollback(self: Box<Self>) -> Result<(), StoreError>;
}

/// An outbox in a SQL database.
#[derive(Debug, Clone)]
pub struct SqlOutbox<D: SqlDatabase> {
    pub(crate) database: D,
    pub(crate) templates: Templates,
    lanes: D::Lanes,
    lane_table: TableName,
    published: Aging<D>,
    keeps_published: bool,
    leases_on_floor: bool,
}

impl<D: SqlDatabase> SqlOutbox<D> {
    /// Opens the outbox of this database under its usual names.
    ///
    /// # Errors
    /// `Schema` if it is not there, or is of a version that this program does not speak.
    pub async fn open(database: D) -> Result<Self, StoreError> {
        let names = Names::default_for(database.dialect())?;
        Self::open_as(database, names).await
    }

    /// Opens the outbox of this database under other names.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub async fn open_as(database: D, names: Names) -> Result<Self, StoreError> {
        let lane_table = names.table("lane")?;
        let templates = Templates { dialect: database.dialect(), names };
        check_schema(&database, &templates, &SchemaSet::OUTBOX).await?;
        let lanes = database.open_lanes(Table::named(lane_table.clone(), ["target", "lane"])?).await?;
        let published =
            Aging::new(&database, &templates.names, "published", &["target", "id"], "published_at")?;
        let (keeps_published, leases_on_floor) = (false, false);
        Ok(Self { database, templates, lanes, lane_table, published, keeps_published, leases_on_floor })
    }

    /// Keeps published events as history, until they are purged.
    #[must_use]
    pub fn keep_published(mut self, keep: bool) -> Self {
        self.keeps_published = keep;
        self
    }

    /// Leases lanes on the portable floor of the claim primitive instead of this database's fast path.
    #[must_use]
    pub fn leases_on_floor(mut self, floor: bool) -> Self {
        self.leases_on_floor = floor;
        self
    }

    pub(crate) async fn read(
        &self,
        op: &'static str,
        statement: &Statement,
    ) -> Result<Vec<RowReader>, StoreError> {
        let subject = self.templates.names.subject();
        let patience = self.database.time_to_try();
        let rows = retry(op, &subject, patience, || self.database.query(op, statement)).await?;
        Ok(rows.into_iter().map(RowReader::new).collect())
    }

    /// Runs statements in one transaction, again if it was contended; how many rows each changed.
    pub(crate) async fn write(
        &self,
        op: &'static str,
        statements: &[Statement],
    ) -> Result<Vec<u64>, StoreError> {
        let subject = self.templates.names.subject();
        retry(op, &subject, self.database.time_to_try(), || async {
            let mut transaction = self.database.begin(op).await?;
            let mut changed = Vec::with_capacity(statements.len());
            for statement in statements {
                changed.push(transaction.execute(statement).await?);
            }
            transaction.commit().await?;
            Ok(changed)
        })
        .await
    }
}

/// Only what is there once, in its order.
fn distinct<T: std::hash::Hash + Eq + Clone>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = HashSet::new();
    items.into_iter().filter(|item| seen.insert(item.clone())).collect()
}
