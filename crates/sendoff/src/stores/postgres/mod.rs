//! PostgreSQL: one statement a claim.

mod adopted;
mod errors;
mod layout;
mod outbox;
mod pooler;
mod rows;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgArguments, PgConnectOptions, PgPool, PgPoolOptions, PgRow};
use sqlx::query::Query;
use sqlx::{
    Arguments as _, AssertSqlSafe, Connection as _, Executor as _, FromRow, PgConnection, Postgres, Row as _,
};

use super::sql::{Bind, Connections, Dialect, Layout, PATIENCE, Plan, Renderer, Statement, key, retry};
use crate::claim::{ClaimSpec, Claimable, Key, Table};
use crate::error::{StoreError, StoreErrorKind};

pub use outbox::{Announcer, Listening, PostgresOutbox};
pub use pooler::Pooler;

/// Claimers beyond this many wait for each other.
const CONNECTIONS_MAX: u32 = 16;

/// First statement of each session of sendoff's own. A statement that waited for a row lock must see
/// what was committed meanwhile; at REPEATABLE READ it sees what was there before it waited.
const READ_COMMITTED: &str = "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// Beginning of every transaction, whatever the session's default level is.
const BEGIN: &str = "BEGIN ISOLATION LEVEL READ COMMITTED";

/// A PostgreSQL database that sendoff has connections of its own to.
///
/// It owns its pool, and there is no way to make it from a transaction: a claim commits by
/// itself. This compiles:
///
/// ```no_run
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::stores::postgres::{PostgresDatabase, Pooler};
/// let database = PostgresDatabase::from_pool(pool, Pooler::None).await?;
/// # Ok(())
/// # }
/// ```
///
/// and this, which would claim inside a caller's transaction, does not:
///
/// ```compile_fail
/// # async fn example(pool: sqlx::PgPool) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::stores::postgres::{PostgresDatabase, Pooler};
/// let transaction = pool.begin().await?;
/// let database = PostgresDatabase::from_pool(transaction, Pooler::None).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct PostgresDatabase {
    connections: Connections<sqlx::Postgres>,
    pooler: Pooler,
    patience: Duration,
}

impl PostgresDatabase {
    /// Connects directly. Through a transaction-mode pooler use
    /// [`connect_through`](Self::connect_through): the difference is found out and refused.
    ///
    /// # Errors
    /// `Unavailable` if the server cannot be reached, `Rejected` for a bad URL, `Schema` if a
    /// transaction-mode pooler answers.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_through(url, Pooler::None).await
    }

    /// Connects through what stands between here and the server.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_through(url: &str, pooler: Pooler) -> Result<Self, StoreError> {
        let options: PgConnectOptions =
            url.parse().map_err(|error| errors::convert("connect", "database", error))?;
        let options = match pooler {
            Pooler::None => options,
            // A cached statement lives in a server session, and that changes under us. The start-up
            // parameter is one that poolers refuse.
            Pooler::Transaction => options.statement_cache_capacity(0).extra_float_digits(None),
        };
        let pool = match pooler {
            Pooler::None => PgPoolOptions::new().after_connect(|connection, _| {
                Box::pin(async move { connection.execute(READ_COMMITTED).await.map(drop) })
            }),
            // A setting would stay in a server session that other clients get as well.
            Pooler::Transaction => PgPoolOptions::new(),
        };
        let connections = Connections::open(pool, options, CONNECTIONS_MAX)
            .await
            .map_err(|error| errors::convert("connect", "database", error))?;
        Self::over(connections, pooler).await
    }

    /// Uses a pool that the host has made. For [`Pooler::Transaction`] its statement cache must be off.
    /// Its sessions may have any isolation level: every statement runs in a READ COMMITTED transaction,
    /// which is two more trips each.
    ///
    /// # Errors
    /// `Schema` if the pool leads through a transaction-mode pooler and `pooler` does not say so.
    pub async fn from_pool(pool: PgPool, pooler: Pooler) -> Result<Self, StoreError> {
        Self::over(Connections::of_host(pool), pooler).await
    }

    async fn over(connections: Connections<sqlx::Postgres>, pooler: Pooler) -> Result<Self, StoreError> {
        if pooler == Pooler::None {
            pooler::refuse_undeclared(&connections.options()).await?;
        }
        Ok(Self { connections, pooler, patience: PATIENCE })
    }

    /// How long contention is retried before a claim answers `Contended`; 10 seconds if not said.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Opens a table, after checking that it has the columns and the key that `table` names.
    ///
    /// # Errors
    /// `Schema` or `Rejected`, saying what does not fit.
    pub async fn table<R>(&self, table: Table) -> Result<PostgresTable<R>, StoreError> {
        let subject = table.name().to_string();
        let layout = layout::read(self, table).await?;
        Ok(PostgresTable {
            database: self.clone(),
            layout: Arc::new(layout),
            subject: subject.into(),
            row: PhantomData,
        })
    }

    /// Runs one statement in a transaction of its own and returns its rows once that is committed.
    async fn run(
        &self,
        op: &'static str,
        subject: &str,
        statement: &Statement,
    ) -> Result<Vec<PgRow>, StoreError> {
        let convert = |error| errors::convert(op, subject, error);
        let mut connection = self.connections.acquire().await.map_err(convert)?;
        // Copied: the driver keeps it as the key of its statement cache.
        let sql = AssertSqlSafe(statement.sql.clone());
        let query = sqlx::query_with(sql, arguments(statement).map_err(convert)?);
        let answer = self.run_query(&mut connection, query).await;
        if answer.as_ref().is_err_and(errors::is_stale_plan) {
            return Err(forget_plans(&mut connection, op, subject).await);
        }
        let rows = answer.map_err(convert)?;
        connection.keep();
        Ok(rows)
    }

    /// Runs one statement at READ COMMITTED: by itself in a session of sendoff's own, in a transaction
    /// where the session is the host's or changes behind a pooler.
    async fn run_query(
        &self,
        connection: &mut PgConnection,
        query: Query<'_, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, sqlx::Error> {
        if self.pooler == Pooler::None && self.connections.are_ours() {
            return query.fetch_all(connection).await;
        }
        let mut transaction = connection.begin_with(BEGIN).await?;
        // Prepared and run in one transaction: behind a pooler that is what keeps the two together.
        let query = query.persistent(self.pooler == Pooler::None);
        match query.fetch_all(&mut *transaction).await {
            Ok(rows) => {
                transaction.commit().await?;
                Ok(rows)
            }
            Err(error) => {
                // If this fails as well the connection is broken, and the first error says why.
                let _ = transaction.rollback().await;
                Err(error)
            }
        }
    }
}

/// The statement that claims as `spec` says.
fn claim_template(spec: &ClaimSpec) -> &'static str {
    if spec.removes() { include_str!("claim_remove.sql") } else { include_str!("claim.sql") }
}

/// A table in PostgreSQL whose rows are read as `R`.
#[derive(Debug)]
pub struct PostgresTable<R> {
    database: PostgresDatabase,
    layout: Arc<Layout>,
    subject: Arc<str>,
    row: PhantomData<fn() -> R>,
}

impl<R> Clone for PostgresTable<R> {
    fn clone(&self) -> Self {
        Self {
            database: self.database.clone(),
            layout: Arc::clone(&self.layout),
            subject: Arc::clone(&self.subject),
            row: PhantomData,
        }
    }
}

impl<R> PostgresTable<R> {
    /// The key that starts at column `from`.
    fn key(&self, row: &PgRow, from: usize) -> Result<Key, StoreError> {
        key(row, from, self.layout.key().len(), rows::value)
            .map_err(|error| errors::convert("find", &self.subject, error))
    }

    fn renderer<'a>(&'a self, spec: &'a ClaimSpec) -> Result<Renderer<'a>, StoreError> {
        self.layout.accepts(spec)?;
        Ok(Renderer::new(Dialect::Postgres, &self.layout, spec))
    }

    async fn run(&self, op: &'static str, statement: &Statement) -> Result<Vec<PgRow>, StoreError> {
        retry(op, &self.subject, self.database.patience, || self.database.run(op, &self.subject, statement))
            .await
    }

    /// How the server would run this claim now. Claims nothing.
    ///
    /// # Errors
    /// As a claim.
    pub async fn explain(&self, spec: &ClaimSpec) -> Result<Plan, StoreError> {
        let mut statement = self.renderer(spec)?.fill(claim_template(spec))?;
        statement.sql.insert_str(0, "EXPLAIN (COSTS OFF) ");
        let rows = self.run("explain", &statement).await?;
        let lines: Vec<String> = rows.iter().filter_map(|row| row.try_get(0).ok()).collect();
        Ok(layout::plan(&lines))
    }
}

impl<R> PostgresTable<R>
where
    R: for<'r> FromRow<'r, PgRow> + Send + Unpin,
{
    fn read(&self, op: &'static str, rows: &[PgRow]) -> Result<Vec<R>, StoreError> {
        rows.iter()
            .map(|row| R::from_row(row).map_err(|error| errors::convert(op, &self.subject, error)))
            .collect()
    }

    /// Runs a statement that removes rows, in a transaction around it: one that cannot be read as `R` is found out while it can still
    /// stay.
    async fn remove_once(&self, statement: &Statement) -> Result<Vec<R>, StoreError> {
        let convert = |error| errors::convert("claim", &self.subject, error);
        let mut connection = self.database.connections.acquire().await.map_err(convert)?;
        let mut transaction = connection.begin_with(BEGIN).await.map_err(convert)?;
        let query =
            sqlx::query_with(AssertSqlSafe(statement.sql.clone()), arguments(statement).map_err(convert)?);
        let query = query.persistent(self.database.pooler == Pooler::None);
        let answer = query.fetch_all(&mut *transaction).await;
        if answer.as_ref().is_err_and(errors::is_stale_plan) {
            transaction.rollback().await.map_err(convert)?;
            return Err(forget_plans(&mut connection, "claim", &self.subject).await);
        }
        let removed = self.read("claim", &in_order(answer.map_err(convert)?))?;
        transaction.commit().await.map_err(convert)?;
        connection.keep();
        Ok(removed)
    }

    async fn remove(&self, statement: &Statement) -> Result<Vec<R>, StoreError> {
        retry("claim", &self.subject, self.database.patience, || self.remove_once(statement)).await
    }
}

/// The order in which they were picked, which RETURNING does not keep.
fn in_order(mut rows: Vec<PgRow>) -> Vec<PgRow> {
    rows.sort_by_cached_key(|row| row.try_get::<i64, _>("sendoff_n").unwrap_or(i64::MAX));
    rows
}

/// Somebody changed the table: the server has rolled back, and plans anew next time.
async fn forget_plans(connection: &mut PgConnection, op: &'static str, subject: &str) -> StoreError {
    match connection.clear_cached_statements().await {
        Ok(()) => StoreError::new(StoreErrorKind::Contended, op, subject, "the table was changed"),
        Err(error) => errors::convert(op, subject, error),
    }
}

impl<R> Claimable for PostgresTable<R>
where
    R: for<'r> FromRow<'r, PgRow> + Send + Unpin,
{
    type Id = Key;
    type Row = R;

    async fn find(&self, spec: &ClaimSpec) -> Result<Vec<Key>, StoreError> {
        let statement = self.renderer(spec)?.fill(include_str!("find.sql"))?;
        let rows = self.run("find", &statement).await?;
        rows.iter().map(|row| self.key(row, 0)).collect()
    }

    async fn claim_one(&self, spec: &ClaimSpec, id: &Key) -> Result<Option<R>, StoreError> {
        let renderer = self.renderer(spec)?.keys(std::slice::from_ref(id));
        if spec.removes() {
            let statement = renderer.fill(include_str!("claim_remove_one.sql"))?;
            return Ok(self.remove(&statement).await?.pop());
        }
        let statement = renderer.fill(include_str!("claim_one.sql"))?;
        let rows = self.run("claim", &statement).await?;
        Ok(self.read("claim", &rows)?.pop())
    }

    /// One statement, one trip; two more where it removes rows, for the transaction around it.
    async fn claim(&self, spec: &ClaimSpec) -> Result<Vec<R>, StoreError> {
        if spec.limit() == 0 {
            return Ok(Vec::new());
        }
        let statement = self.renderer(spec)?.fill(claim_template(spec))?;
        if spec.removes() {
            return self.remove(&statement).await;
        }
        let rows = in_order(self.run("claim", &statement).await?);
        self.read("claim", &rows)
    }
}

fn arguments(statement: &Statement) -> Result<PgArguments, sqlx::Error> {
    let mut arguments = PgArguments::default();
    for bind in &statement.binds {
        match bind {
            Bind::Bool(value) => arguments.add(*value),
            Bind::Int(value) => arguments.add(*value),
            Bind::Float(value) => arguments.add(*value),
            Bind::Text(value) => arguments.add(value.as_str()),
            Bind::Bytes(value) => arguments.add(value.as_slice()),
            Bind::Uuid(value) => arguments.add(*value),
            Bind::Json(value) => arguments.add(value.clone()),
            Bind::Moment(value) => arguments.add(*value),
            Bind::PlainMoment(value) => arguments.add(*value),
            Bind::Ints(values) => arguments.add(values.as_slice()),
            Bind::Texts(values) => arguments.add(values.as_slice()),
            Bind::Uuids(values) => arguments.add(values.as_slice()),
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}
