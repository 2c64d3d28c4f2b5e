//! An inbox of a test's own, and a consumer's transactions on it.

use std::sync::Arc;
use std::time::Duration;

use sendoff::inbox::{Arrival, Inbox, Inspect, Once, Order, SqlInbox};
use sendoff::stores::Names;
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::{EventId, StoreError};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, Executor as _, MySqlPool, PgPool, SqlitePool};

use crate::servers::Server;

/// How long a consumer waits for another one on SQLite.
const BUSY: Duration = Duration::from_secs(20);

/// A consumer's own connections.
#[derive(Debug, Clone)]
pub(crate) enum Pool {
    Postgres(PgPool),
    Mysql(MySqlPool),
    Sqlite(SqlitePool),
}

impl Pool {
    pub(crate) async fn connect(url: &str) -> Self {
        match url.split(':').next().unwrap() {
            "sqlite" => {
                let options = url.parse::<SqliteConnectOptions>().unwrap().busy_timeout(BUSY);
                Self::Sqlite(SqlitePool::connect_with(options).await.unwrap())
            }
            "mysql" => Self::Mysql(MySqlPool::connect(url).await.unwrap()),
            _ => Self::Postgres(PgPool::connect(url).await.unwrap()),
        }
    }

    pub(crate) async fn begin(&self) -> Transaction {
        self.begin_with(None).await
    }

    /// A transaction that begins with this statement.
    pub(crate) async fn begin_with(&self, statement: Option<&'static str>) -> Transaction {
        match self {
            Self::Postgres(pool) => {
                Transaction::Postgres(pool.begin_with(statement.unwrap_or("BEGIN")).await.unwrap())
            }
            Self::Mysql(pool) => {
                Transaction::Mysql(pool.begin_with(statement.unwrap_or("BEGIN")).await.unwrap())
            }
            Self::Sqlite(pool) => {
                Transaction::Sqlite(pool.begin_with(statement.unwrap_or("BEGIN")).await.unwrap())
            }
        }
    }

    pub(crate) async fn execute(&self, sql: String) {
        let sql = AssertSqlSafe(sql);
        match self {
            Self::Postgres(pool) => drop(pool.execute(sql).await.unwrap()),
            Self::Mysql(pool) => drop(pool.execute(sql).await.unwrap()),
            Self::Sqlite(pool) => drop(pool.execute(sql).await.unwrap()),
        }
    }

    /// Several statements, as people run them.
    pub(crate) async fn script(&self, sql: String) {
        let sql = sqlx::raw_sql(AssertSqlSafe(sql));
        match self {
            Self::Postgres(pool) => drop(sql.execute(pool).await.unwrap()),
            Self::Mysql(pool) => drop(sql.execute(pool).await.unwrap()),
            Self::Sqlite(pool) => drop(sql.execute(pool).await.unwrap()),
        }
    }

    pub(crate) async fn number(&self, sql: String) -> i64 {
        let sql = AssertSqlSafe(sql);
        match self {
            Self::Postgres(pool) => sqlx::query_scalar(sql).fetch_one(pool).await.unwrap(),
            Self::Mysql(pool) => sqlx::query_scalar(sql).fetch_one(pool).await.unwrap(),
            Self::Sqlite(pool) => sqlx::query_scalar(sql).fetch_one(pool).await.unwrap(),
        }
    }
}

/// A consumer's own transaction.
pub(crate) enum Transaction {
    Postgres(sqlx::Transaction<'static, sqlx::Postgres>),
    Mysql(sqlx::Transaction<'static, sqlx::MySql>),
    Sqlite(sqlx::Transaction<'static, sqlx::Sqlite>),
}

macro_rules! on {
    ($self:expr, $transaction:ident => $what:expr) => {
        match $self {
            Transaction::Postgres($transaction) => $what,
            Transaction::Mysql($transaction) => $what,
            Transaction::Sqlite($transaction) => $what,
        }
    };
}

impl Transaction {
    pub(crate) async fn once(
        &mut self,
        inbox: &Inbox,
        consumer: &str,
        id: EventId,
    ) -> Result<Once, StoreError> {
        on!(self, transaction => inbox.once(transaction, consumer, id).await)
    }

    pub(crate) async fn once_many(
        &mut self,
        inbox: &Inbox,
        consumer: &str,
        ids: &[EventId],
    ) -> Result<Vec<Once>, StoreError> {
        on!(self, transaction => inbox.once_many(transaction, consumer, ids).await)
    }

    pub(crate) async fn follow(
        &mut self,
        inbox: &Inbox,
        consumer: &str,
        arrival: &Arrival,
    ) -> Result<Order, StoreError> {
        on!(self, transaction => inbox.follow(transaction, consumer, arrival).await)
    }

    pub(crate) async fn execute(&mut self, sql: String) -> Result<(), sqlx::Error> {
        let sql = AssertSqlSafe(sql);
        on!(self, transaction => transaction.execute(sql).await.map(drop))
    }

    pub(crate) async fn commit(self) -> Result<(), sqlx::Error> {
        on!(self, transaction => transaction.commit().await)
    }

    pub(crate) async fn rollback(self) {
        on!(self, transaction => transaction.rollback().await.unwrap());
    }
}

/// An inbox with tables of its own.
pub(crate) struct TestInbox {
    /// Which database it is in.
    pub(crate) store: &'static str,
    pub(crate) url: String,
    /// What stands before the name of each of its tables.
    pub(crate) prefix: String,
    pub(crate) inbox: Inbox,
    pub(crate) pool: Pool,
    pub(crate) inspect: Arc<dyn Inspect>,
    _directory: Option<tempfile::TempDir>,
}

impl TestInbox {
    pub(crate) async fn open(server: Option<Server>) -> Self {
        let name = format!("i{:012x}", fastrand::u64(..1 << 48));
        let directory = server.is_none().then(|| tempfile::tempdir().unwrap());
        let url = match (&directory, server) {
            (Some(directory), _) => format!("sqlite://{}", directory.path().join("inbox.db").display()),
            (None, server) => server.unwrap().url(),
        };
        let names = names(server, &name);
        macro_rules! open {
            ($database:ty) => {{
                let database = <$database>::connect(&url).await.unwrap();
                SqlInbox::migration_as(database.clone(), names.clone()).run().await.unwrap();
                Arc::new(SqlInbox::open_as(database, names.clone()).await.unwrap())
            }};
        }
        let (inspect, prefix): (Arc<dyn Inspect>, String) = match server {
            None => (open!(SqliteDatabase), format!("{name}_")),
            Some(Server::Mariadb) => (open!(MysqlDatabase), format!("{name}_")),
            Some(_) => (open!(PostgresDatabase), format!("{name}.")),
        };
        let pool = Pool::connect(&url).await;
        let store = server.map_or("sqlite", Server::name);
        Self { store, url, prefix, inbox: Inbox::named(names), pool, inspect, _directory: directory }
    }

    pub(crate) async fn rows(&self, table: &str) -> i64 {
        self.pool.number(format!("SELECT COUNT(*) FROM {}{table}", self.prefix)).await
    }

    /// Makes what is there so much older.
    pub(crate) async fn age(&self, table: &str, column: &str, filter: &str, seconds: i64) {
        let older = match &self.pool {
            Pool::Postgres(_) => format!("{column} - interval '{seconds} seconds'"),
            Pool::Mysql(_) => format!("{column} - INTERVAL {seconds} SECOND"),
            Pool::Sqlite(_) => format!("{column} - {seconds} * 1000000"),
        };
        self.pool.execute(format!("UPDATE {}{table} SET {column} = {older} {filter}", self.prefix)).await;
    }
}

/// In a schema on PostgreSQL, under a prefix elsewhere.
pub(crate) fn names(server: Option<Server>, name: &str) -> Names {
    match server {
        None | Some(Server::Mariadb) => Names::prefix(&format!("{name}_")).unwrap(),
        Some(_) => Names::schema(name).unwrap(),
    }
}
