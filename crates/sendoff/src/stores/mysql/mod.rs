//! MariaDB and MySQL: lock, mark and read in one READ COMMITTED transaction.

mod adopted;
mod errors;
mod index;
mod layout;
mod outbox;
mod removal;
mod rows;
mod server;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use sqlx::mysql::{MySqlArguments, MySqlConnectOptions, MySqlPool, MySqlPoolOptions, MySqlRow};
use sqlx::{
    Arguments as _, AssertSqlSafe, Connection as _, Executor as _, FromRow, MySql, MySqlConnection, Row as _,
    Transaction,
};

use self::index::Index;
use super::sql::{
    Bind, Connections, Dialect, KEYS_PER_STATEMENT, Layout, PATIENCE, Plan, Renderer, Statement,
    in_picked_order, key, retry,
};
use crate::claim::{ClaimSpec, Claimable, Key, Table};
use crate::error::{StoreError, StoreErrorKind};

pub use outbox::MysqlOutbox;
pub use server::{Server, Topology};

/// What each session of ours begins with.
const READ_COMMITTED: &str = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";

/// Claimers beyond this many wait for each other.
const CONNECTIONS_MAX: u32 = 16;

/// Under REPEATABLE READ a claim would lock the gaps between rows, and with them the host's inserts.
/// Both in one trip.
const BEGIN: &str = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION";

/// A MariaDB or MySQL database that sendoff has connections of its own to.
///
/// It owns its pool, and there is no way to make it from a transaction: a claim commits by
/// itself. This compiles:
///
/// ```no_run
/// # async fn example(pool: sqlx::MySqlPool) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::stores::mysql::MysqlDatabase;
/// let database = MysqlDatabase::from_pool(pool).await?;
/// # Ok(())
/// # }
/// ```
///
/// and this, which would claim inside a caller's transaction, does not:
///
/// ```compile_fail
/// # async fn example(pool: sqlx::MySqlPool) -> Result<(), Box<dyn std::error::Error>> {
/// use sendoff::stores::mysql::MysqlDatabase;
/// let transaction = pool.begin().await?;
/// let database = MysqlDatabase::from_pool(transaction).await?;
/// # Ok(())
/// # }
/// ```
///
/// Tested with MariaDB 10.11. MySQL 8 has the same statements by its manual; the suite has not been
/// run against one.
#[derive(Debug, Clone)]
pub struct MysqlDatabase {
    connections: Connections<sqlx::MySql>,
    server: Arc<Server>,
    patience: Duration,
}

impl MysqlDatabase {
    /// Connects.
    ///
    /// # Errors
    /// `Unavailable` if the server cannot be reached, `Rejected` for a bad URL, `Schema` if it is too
    /// old to skip locked rows.
    pub async fn connect(url: &str) -> Result<Self, StoreError> {
        let options: MySqlConnectOptions =
            url.parse().map_err(|error| errors::convert("connect", "database", error))?;
        // Reads outside of a transaction have the session's level, and a server may let sessions begin with one that sees what is not committed.
        let pool = MySqlPoolOptions::new().after_connect(|connection, _| {
            Box::pin(async move { connection.execute(READ_COMMITTED).await.map(drop) })
        });
        let connections = Connections::open(pool, options, CONNECTIONS_MAX)
            .await
            .map_err(|error| errors::convert("connect", "database", error))?;
        Self::over(connections).await
    }

    /// Uses a pool that the host has made. Its sessions must be in UTC, as the driver's are by default, and must not see what is not committed.
    ///
    /// # Errors
    /// `Schema` if the server is too old, the session's zone is not UTC, or its isolation level is READ UNCOMMITTED.
    pub async fn from_pool(pool: MySqlPool) -> Result<Self, StoreError> {
        Self::over(Connections::of_host(pool)).await
    }

    async fn over(connections: Connections<sqlx::MySql>) -> Result<Self, StoreError> {
        let mut connection =
            connections.acquire().await.map_err(|error| errors::convert("connect", "database", error))?;
        let server = Server::read(&mut connection).await?;
        connection.keep();
        if let Some(warning) = server.topology().warning() {
            tracing::warn!("{warning}");
        }
        Ok(Self { connections, server: Arc::new(server), patience: PATIENCE })
    }

    /// What answers at the other end, and what is supported there.
    pub fn server(&self) -> &Server {
        &self.server
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
    pub async fn table<R>(&self, table: Table) -> Result<MysqlTable<R>, StoreError> {
        let subject = table.name().to_string();
        let mut connection = self
            .connections
            .acquire()
            .await
            .map_err(|error| errors::convert("open table", &subject, error))?;
        let (layout, indexes) = layout::read(&mut connection, table).await?;
        connection.keep();
        Ok(MysqlTable {
            database: self.clone(),
            layout: Arc::new(layout),
            indexes: indexes.into(),
            subject: subject.into(),
            row: PhantomData,
        })
    }
}

/// A table in MariaDB or MySQL whose rows are read as `R`.
#[derive(Debug)]
pub struct MysqlTable<R> {
    database: MysqlDatabase,
    layout: Arc<Layout>,
    indexes: Arc<[Index]>,
    subject: Arc<str>,
    row: PhantomData<fn() -> R>,
}

impl<R> Clone for MysqlTable<R> {
    fn clone(&self) -> Self {
        Self {
            database: self.database.clone(),
            layout: Arc::clone(&self.layout),
            indexes: Arc::clone(&self.indexes),
            subject: Arc::clone(&self.subject),
            row: PhantomData,
        }
    }
}

impl<R> MysqlTable<R> {
    /// The key that starts at column `from`.
    fn key(&self, row: &MySqlRow, from: usize) -> Result<Key, StoreError> {
        key(row, from, self.layout.key().len(), rows::value)
            .map_err(|error| errors::convert("find", &self.subject, error))
    }

    fn renderer<'a>(&'a self, spec: &'a ClaimSpec) -> Result<Renderer<'a>, StoreError> {
        self.layout.accepts(spec)?;
        Ok(Renderer::new(Dialect::Mysql, &self.layout, spec).trusts_locks(self.trusts_locks()))
    }

    /// A node of a cluster takes a transaction back when a replicated one needs its rows, and does not always say so:
    /// with a SELECT after the write, COMMIT was seen to succeed with nothing left to commit. So there rows are marked
    /// only if they are still eligible, read after the COMMIT, and handed over only if they are as this claim left
    /// them. `docs/adr/0004` has the races.
    fn trusts_locks(&self) -> bool {
        matches!(self.database.server.topology(), Topology::Single)
    }

    fn lock_statement(&self, spec: &ClaimSpec) -> Result<Statement, StoreError> {
        let chosen = match &self.layout.table().claim_index {
            Some(named) => Some(named.as_str()),
            None => index::for_claim(&self.indexes, spec),
        };
        let template = if spec.removes() {
            include_str!("claim_remove_1_lock.sql")
        } else {
            include_str!("claim_1_lock.sql")
        };
        self.renderer(spec)?.scan_index(chosen).fill(template)
    }

    /// How the server would find the rows of this claim now. Claims nothing.
    ///
    /// # Errors
    /// As a claim.
    pub async fn explain(&self, spec: &ClaimSpec) -> Result<Plan, StoreError> {
        let mut statement = self.lock_statement(spec)?;
        statement.sql.insert_str(0, "EXPLAIN ");
        let convert = |error| errors::convert("explain", &self.subject, error);
        let mut connection = self.database.connections.acquire().await.map_err(convert)?;
        let rows = self.fetch("explain", &mut connection, &statement).await?;
        layout::plan(&rows).map_err(convert)
    }

    async fn fetch(
        &self,
        op: &'static str,
        connection: &mut MySqlConnection,
        statement: &Statement,
    ) -> Result<Vec<MySqlRow>, StoreError> {
        let convert = |error| errors::convert(op, &self.subject, error);
        let arguments = arguments(statement).map_err(convert)?;
        let sql = AssertSqlSafe(statement.sql.clone());
        sqlx::query_with(sql, arguments).fetch_all(connection).await.map_err(convert)
    }

    /// How many rows the statement matched.
    async fn execute(
        &self,
        connection: &mut MySqlConnection,
        statement: &Statement,
    ) -> Result<u64, StoreError> {
        let convert = |error| errors::convert("claim", &self.subject, error);
        let arguments = arguments(statement).map_err(convert)?;
        let sql = AssertSqlSafe(statement.sql.clone());
        let done = sqlx::query_with(sql, arguments).execute(connection).await.map_err(convert)?;
        Ok(done.rows_affected())
    }
}

impl<R> MysqlTable<R>
where
    R: for<'r> FromRow<'r, MySqlRow> + Send + Unpin,
{
    /// The rows as this claim left them.
    async fn marked(
        &self,
        connection: &mut MySqlConnection,
        spec: &ClaimSpec,
        keys: &[Key],
    ) -> Result<Vec<(Key, R)>, StoreError> {
        let convert = |error| errors::convert("claim", &self.subject, error);
        let mut marked = Vec::with_capacity(keys.len());
        for keys in keys.chunks(KEYS_PER_STATEMENT) {
            let read = self.renderer(spec)?.keys(keys).fill(include_str!("claim_3_read.sql"))?;
            for row in self.fetch("claim", connection, &read).await? {
                if !row.try_get_unchecked("sendoff_ours").map_err(convert)? {
                    tracing::warn!(
                        table = &*self.subject,
                        "a node of the cluster lost a claim that it had committed"
                    );
                    continue;
                }
                let key = self.key(&row, row.len() - self.layout.key().len())?;
                marked.push((key, R::from_row(&row).map_err(convert)?));
            }
        }
        Ok(marked)
    }

    /// Commits what was marked, and reads it: before the commit, when nobody else can have touched it, or on a cluster after it.
    async fn commit(
        &self,
        mut transaction: Transaction<'_, MySql>,
        spec: &ClaimSpec,
        keys: &[Key],
    ) -> Result<Option<Vec<(Key, R)>>, StoreError> {
        let convert = |error| errors::convert("claim", &self.subject, error);
        let before =
            if self.trusts_locks() { Some(self.marked(&mut transaction, spec, keys).await?) } else { None };
        // On a cluster this is where a claim of the same rows on another node wins: then nothing was claimed.
        transaction.commit().await.map_err(convert)?;
        Ok(before)
    }

    async fn claim_once(&self, spec: &ClaimSpec, lock: &Statement) -> Result<Vec<R>, StoreError> {
        let convert = |error| errors::convert("claim", &self.subject, error);
        let mut connection = self.database.connections.acquire().await.map_err(convert)?;
        let mut transaction = connection.begin_with(BEGIN).await.map_err(convert)?;

        let mut picked = Vec::new();
        for row in self.fetch("claim", &mut transaction, lock).await? {
            picked.push(self.key(&row, 0)?);
        }
        if picked.is_empty() {
            transaction.rollback().await.map_err(convert)?;
            connection.keep();
            return Ok(Vec::new());
        }
        let mut ascending = picked.clone();
        ascending.sort_by_cached_key(rows::ascending);
        for keys in ascending.chunks(KEYS_PER_STATEMENT) {
            let mark = self.renderer(spec)?.keys(keys).fill(include_str!("claim_2_mark.sql"))?;
            let matched = self.execute(&mut transaction, &mark).await?;
            if matched != keys.len() as u64 {
                return Err(self.lost_while_locked(keys.len(), matched));
            }
        }
        let rows = match self.commit(transaction, spec, &ascending).await? {
            Some(rows) => rows,
            None => self.marked(&mut connection, spec, &ascending).await?,
        };
        connection.keep();
        Ok(in_picked_order(&picked, rows))
    }

    async fn claim_one_once(&self, spec: &ClaimSpec, id: &Key) -> Result<Option<R>, StoreError> {
        let convert = |error| errors::convert("claim", &self.subject, error);
        let keys = std::slice::from_ref(id);
        let mark = self.renderer(spec)?.keys(keys).fill(include_str!("claim_one.sql"))?;
        let mut connection = self.database.connections.acquire().await.map_err(convert)?;
        let mut transaction = connection.begin_with(BEGIN).await.map_err(convert)?;
        if self.execute(&mut transaction, &mark).await? == 0 {
            transaction.rollback().await.map_err(convert)?;
            connection.keep();
            return Ok(None);
        }
        let mut rows = match self.commit(transaction, spec, keys).await? {
            Some(rows) => rows,
            None => self.marked(&mut connection, spec, keys).await?,
        };
        connection.keep();
        Ok(rows.pop().map(|(_, row)| row))
    }

    /// Locked by us and gone all the same: what was neither marked nor deleted is never handed over.
    fn lost_while_locked(&self, locked: usize, changed: u64) -> StoreError {
        let detail = format!("{locked} rows were locked but {changed} marked or deleted");
        let kind = if self.trusts_locks() { StoreErrorKind::Schema } else { StoreErrorKind::Contended };
        StoreError::new(kind, "claim", &*self.subject, detail)
    }
}

impl<R> Claimable for MysqlTable<R>
where
    R: for<'r> FromRow<'r, MySqlRow> + Send + Unpin,
{
    type Id = Key;
    type Row = R;

    async fn find(&self, spec: &ClaimSpec) -> Result<Vec<Key>, StoreError> {
        let statement = self.renderer(spec)?.fill(include_str!("find.sql"))?;
        let convert = |error| errors::convert("find", &self.subject, error);
        let rows = retry("find", &self.subject, self.database.patience, || async {
            let mut connection = self.database.connections.acquire().await.map_err(convert)?;
            let rows = self.fetch("find", &mut connection, &statement).await?;
            connection.keep();
            Ok(rows)
        })
        .await?;
        rows.iter().map(|row| self.key(row, 0)).collect()
    }

    async fn claim_one(&self, spec: &ClaimSpec, id: &Key) -> Result<Option<R>, StoreError> {
        let patience = self.database.patience;
        if spec.removes() {
            let keys = std::slice::from_ref(id);
            let lock = self.renderer(spec)?.keys(keys).fill(include_str!("claim_remove_one_1_lock.sql"))?;
            let removed = retry("claim", &self.subject, patience, || self.remove_once(spec, &lock)).await;
            return removed.map(|mut rows| rows.pop());
        }
        retry("claim", &self.subject, patience, || self.claim_one_once(spec, id)).await
    }

    /// Five trips whatever the limit: begin, lock, mark, read, commit. Four where rows are removed: they are read when they are locked.
    async fn claim(&self, spec: &ClaimSpec) -> Result<Vec<R>, StoreError> {
        if spec.limit() == 0 {
            return Ok(Vec::new());
        }
        let (lock, patience) = (self.lock_statement(spec)?, self.database.patience);
        if spec.removes() {
            return retry("claim", &self.subject, patience, || self.remove_once(spec, &lock)).await;
        }
        retry("claim", &self.subject, patience, || self.claim_once(spec, &lock)).await
    }
}

fn arguments(statement: &Statement) -> Result<MySqlArguments, sqlx::Error> {
    let mut arguments = MySqlArguments::default();
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
            Bind::Ints(_) | Bind::Texts(_) | Bind::Uuids(_) => {
                unreachable!("only PostgreSQL's claims have arrays")
            }
        }
        .map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}
