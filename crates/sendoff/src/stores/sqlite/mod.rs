//! SQLite: one write transaction a claim, taken at once.

mod adopted;
mod errors;
mod layout;
mod outbox;
mod rows;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{
    SqliteArguments, SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqliteRow, SqliteSynchronous,
};
use sqlx::{Arguments as _, AssertSqlSafe, Connection as _, FromRow, Row as _, SqliteConnection};
use tokio::sync::Mutex;

use super::sql::{
    Bind, Connections, Dialect, KEYS_PER_STATEMENT, Layout, Lent, PATIENCE, Plan, Renderer, Statement,
    in_picked_order, key, retry,
};
use crate::claim::{ClaimSpec, Claimable, Key, Table};
use crate::error::StoreError;

pub use outbox::SqliteOutbox;

/// How long SQLite itself waits for another process's write before it says BUSY; then we take over, with jitter.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// One writes, the others read.
const CONNECTIONS_MAX: u32 = 8;

/// A SQLite database file that sendoff has connections of its own to.
///
/// It owns its pool, and there is no way to make it from a transaction: a claim commits by
/// itself. This compiles:
///
/// ```no_run
/// # async fn example(pool: sqlx::SqlitePool) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::stores::sqlite::SqliteDatabase;
/// let database = SqliteDatabase::from_pool(pool).await?;
/// # Ok(())
/// # }
/// ```
///
/// and this, which would claim inside a caller's transaction, does not:
///
/// ```compile_fail
/// # async fn example(pool: sqlx::SqlitePool) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::stores::sqlite::SqliteDatabase;
/// let transaction = pool.begin().await?;
/// let database = SqliteDatabase::from_pool(transaction).await?;
/// # Ok(())
/// # }
/// ```
///
/// **Time.** The database's clock is that of the process that runs the statement, since SQLite
/// runs in it: all processes on one file share one machine and its clock.
#[derive(Debug, Clone)]
pub struct SqliteDatabase {
    connections: Connections<sqlx::Sqlite>,
    /// One writer at a time in this process. SQLite has one writer anyway, and its own queue for it is
    /// unfair: whoever sleeps longest is passed over.
    writer: Arc<Mutex<()>>,
    patience: Duration,
}

impl SqliteDatabase {
    /// Opens a file, creating it if need be: write-ahead log, and synchronous NORMAL, which keeps
    /// every commit over a crash of the process, and may lose the last ones over a loss of power.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be opened, `Rejected` for a bad URL.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let options: SqliteConnectOptions =
            url.parse().map_err(|error| errors::convert("connect", "database", error))?;
        let options = options
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .busy_timeout(BUSY_TIMEOUT);
        // The switch to the write-ahead log needs the file for itself for a moment.
        let connections = retry("connect", "database", PATIENCE, || async {
            Connections::open(sqlx::pool::PoolOptions::new(), options.clone(), CONNECTIONS_MAX)
                .await
                .map_err(|error| errors::convert("connect", "database", error))
        })
        .await?;
        Self::over(connections).await
    }

    /// Uses a pool that the host has made.
    ///
    /// # Errors
    /// `Schema` if the library is too old to share a write-ahead log safely.
    pub async fn from_pool(pool: SqlitePool) -> Result<Self, StoreError> {
        Self::over(Connections::of_host(pool)).await
    }

    async fn over(connections: Connections<sqlx::Sqlite>) -> Result<Self, StoreError> {
        let convert = |error| errors::convert("connect", "database", error);
        let mut connection = connections.acquire().await.map_err(convert)?;
        let version = sqlx::query_scalar("SELECT sqlite_version()").fetch_one(&mut *connection).await;
        let version: String = version.map_err(convert)?;
        connection.keep();
        layout::check_version(&version)?;
        Ok(Self { connections, writer: Arc::new(Mutex::new(())), patience: PATIENCE })
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
    pub async fn table<R>(&self, table: Table) -> Result<SqliteTable<R>, StoreError> {
        let subject = table.name().to_string();
        let mut connection = self
            .connections
            .acquire()
            .await
            .map_err(|error| errors::convert("open table", &subject, error))?;
        let layout = layout::read(&mut connection, table).await?;
        connection.keep();
        Ok(SqliteTable {
            database: self.clone(),
            layout: Arc::new(layout),
            subject: subject.into(),
            row: PhantomData,
        })
    }
}

/// A table in SQLite whose rows are read as `R`.
#[derive(Debug)]
pub struct SqliteTable<R> {
    database: SqliteDatabase,
    layout: Arc<Layout>,
    subject: Arc<str>,
    row: PhantomData<fn() -> R>,
}

impl<R> Clone for SqliteTable<R> {
    fn clone(&self) -> Self {
        Self {
            database: self.database.clone(),
            layout: Arc::clone(&self.layout),
            subject: Arc::clone(&self.subject),
            row: PhantomData,
        }
    }
}

impl<R> SqliteTable<R> {
    /// The key that starts at column `from`.
    fn key(&self, row: &SqliteRow, from: usize) -> Result<Key, StoreError> {
        key(row, from, self.layout.key().len(), rows::value)
            .map_err(|error| errors::convert("find", &self.subject, error))
    }

    fn renderer<'a>(&'a self, spec: &'a ClaimSpec) -> Result<Renderer<'a>, StoreError> {
        self.layout.accepts(spec)?;
        Ok(Renderer::new(Dialect::Sqlite, &self.layout, spec))
    }

    /// How SQLite would find the rows of this claim. Claims nothing.
    ///
    /// # Errors
    /// As a claim.
    pub async fn explain(&self, spec: &ClaimSpec) -> Result<Plan, StoreError> {
        let mut statement = self.renderer(spec)?.fill(include_str!("claim_1_pick.sql"))?;
        statement.sql.insert_str(0, "EXPLAIN QUERY PLAN ");
        let mut connection = self.acquire("explain").await?;
        let rows = self.fetch("explain", &mut connection, &statement).await?;
        let lines: Vec<String> = rows.iter().filter_map(|row| row.try_get("detail").ok()).collect();
        Ok(layout::plan(&lines))
    }

    async fn acquire(&self, op: &'static str) -> Result<Lent<sqlx::Sqlite>, StoreError> {
        self.database.connections.acquire().await.map_err(|error| errors::convert(op, &self.subject, error))
    }

    /// Runs a statement to its end: one that is not has not committed, and holds the write lock.
    async fn fetch(
        &self,
        op: &'static str,
        connection: &mut SqliteConnection,
        statement: &Statement,
    ) -> Result<Vec<SqliteRow>, StoreError> {
        let convert = |error| errors::convert(op, &self.subject, error);
        let arguments = arguments(statement).map_err(convert)?;
        let sql = AssertSqlSafe(statement.sql.clone());
        sqlx::query_with(sql, arguments).fetch_all(connection).await.map_err(convert)
    }
}

impl<R> SqliteTable<R>
where
    R: for<'r> FromRow<'r, SqliteRow> + Send + Unpin,
{
    fn read(&self, row: &SqliteRow) -> Result<R, StoreError> {
        R::from_row(row).map_err(|error| errors::convert("claim", &self.subject, error))
    }

    /// Pick, then mark or delete, in one transaction that is a writer from its first statement: one that
    /// reads first and writes then fails at once, whatever the timeout, if anybody wrote in between.
    async fn claim_once(&self, spec: &ClaimSpec) -> Result<Vec<R>, StoreError> {
        let convert = |error| errors::convert("claim", &self.subject, error);
        let pick = self.renderer(spec)?.fill(include_str!("claim_1_pick.sql"))?;
        let change =
            if spec.removes() { include_str!("claim_remove.sql") } else { include_str!("claim_2_mark.sql") };

        let _writer = self.database.writer.lock().await;
        let mut connection = self.acquire("claim").await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(convert)?;
        let mut picked = Vec::new();
        for row in self.fetch("claim", &mut transaction, &pick).await? {
            picked.push(self.key(&row, 0)?);
        }
        let mut claimed = Vec::with_capacity(picked.len());
        for keys in picked.chunks(KEYS_PER_STATEMENT) {
            let change = self.renderer(spec)?.keys(keys).fill(change)?;
            for row in self.fetch("claim", &mut transaction, &change).await? {
                let key = self.key(&row, row.len() - self.layout.key().len())?;
                claimed.push((key, self.read(&row)?));
            }
        }
        if picked.is_empty() {
            transaction.rollback().await.map_err(convert)?;
        } else {
            transaction.commit().await.map_err(convert)?;
        }
        connection.keep();
        Ok(in_picked_order(&picked, claimed))
    }

    async fn claim_one_once(&self, statement: &Statement) -> Result<Option<R>, StoreError> {
        let convert = |error| errors::convert("claim", &self.subject, error);
        let _writer = self.database.writer.lock().await;
        let mut connection = self.acquire("claim").await?;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(convert)?;
        let rows = self.fetch("claim", &mut transaction, statement).await?;
        // Before the commit: a row that cannot be read is not removed.
        let claimed = rows.first().map(|row| self.read(row)).transpose()?;
        transaction.commit().await.map_err(convert)?;
        connection.keep();
        Ok(claimed)
    }
}

impl<R> Claimable for SqliteTable<R>
where
    R: for<'r> FromRow<'r, SqliteRow> + Send + Unpin,
{
    type Id = Key;
    type Row = R;

    async fn find(&self, spec: &ClaimSpec) -> Result<Vec<Key>, StoreError> {
        let statement = self.renderer(spec)?.fill(include_str!("find.sql"))?;
        let rows = retry("find", &self.subject, self.database.patience, || async {
            let mut connection = self.acquire("find").await?;
            let rows = self.fetch("find", &mut connection, &statement).await?;
            connection.keep();
            Ok(rows)
        })
        .await?;
        rows.iter().map(|row| self.key(row, 0)).collect()
    }

    async fn claim_one(&self, spec: &ClaimSpec, id: &Key) -> Result<Option<R>, StoreError> {
        let keys = std::slice::from_ref(id);
        let template =
            if spec.removes() { include_str!("claim_remove_one.sql") } else { include_str!("claim_one.sql") };
        let statement = self.renderer(spec)?.keys(keys).fill(template)?;
        retry("claim", &self.subject, self.database.patience, || self.claim_one_once(&statement)).await
    }

    /// One IMMEDIATE transaction.
    async fn claim(&self, spec: &ClaimSpec) -> Result<Vec<R>, StoreError> {
        if spec.limit() == 0 {
            return Ok(Vec::new());
        }
        retry("claim", &self.subject, self.database.patience, || self.claim_once(spec)).await
    }
}

fn arguments(statement: &Statement) -> Result<SqliteArguments, sqlx::Error> {
    let mut arguments = SqliteArguments::default();
    for bind in &statement.binds {
        match bind.clone() {
            Bind::Bool(value) => arguments.add(value),
            Bind::Int(value) => arguments.add(value),
            Bind::Float(value) => arguments.add(value),
            Bind::Text(value) => arguments.add(value),
            Bind::Bytes(value) => arguments.add(value),
            Bind::Uuid(value) => arguments.add(value),
            Bind::Json(value) => arguments.add(value.to_string()),
            Bind::Moment(value) => arguments.add(value),
            Bind::PlainMoment(value) => arguments.add(value),
            Bind::Ints(_) | Bind::Texts(_) | Bind::Uuids(_) => {
                unreachable!("only PostgreSQL's claims have arrays")
            }
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}
