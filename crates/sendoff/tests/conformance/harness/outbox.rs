//! Outboxes in every database, each with tables of its own.

use std::sync::Arc;
use std::time::Duration;

use sendoff::outbox::{Inspect, Store};
use sendoff::stores::mysql::{MysqlDatabase, MysqlOutbox};
use sendoff::stores::postgres::{Pooler, PostgresDatabase, PostgresOutbox};
use sendoff::stores::sqlite::{SqliteDatabase, SqliteOutbox};
use sendoff::stores::{Migration, Names, Outbox, SqlOutbox};
use sendoff::testkit::{HostTransaction, StoreHarness};
use sendoff::{EventId, NewEvent, StoreError};
use sqlx::{MySqlPool, PgPool, SqlitePool};

use crate::servers::Server;

/// An outbox as the suite sees it.
pub(crate) struct Sql<DB: sqlx::Database> {
    pub(crate) store: Arc<dyn Store>,
    with_history: Arc<dyn Store>,
    inspect: Arc<dyn Inspect>,
    /// A host's own connections, apart from those of the outbox.
    pub(crate) host: sqlx::Pool<DB>,
    pub(crate) enqueue: Outbox,
    pub(crate) url: String,
    /// The outbox's schema or prefix.
    pub(crate) names: String,
    _directory: Option<tempfile::TempDir>,
}

pub(crate) struct Host<DB: sqlx::Database> {
    transaction: sqlx::Transaction<'static, DB>,
    enqueue: Outbox,
}

fn fresh() -> String {
    format!("t{:012x}_", fastrand::u64(..1 << 48))
}

/// On the fast path, or with everything on the floor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Path {
    Fast,
    Floor,
}

pub(crate) async fn sqlite(path: Path) -> Sql<sqlx::Sqlite> {
    let directory = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", directory.path().join("test.db").display());
    let database = SqliteDatabase::connect(&url).await.unwrap();
    let prefix = fresh();
    let names = Names::prefix(&prefix).unwrap();
    Migration::named(database.clone(), names.clone()).run().await.unwrap();
    let outbox = SqliteOutbox::open_as(database, names.clone()).await.unwrap();
    let outbox = outbox.leases_on_floor(path == Path::Floor);
    let options =
        url.parse::<sqlx::sqlite::SqliteConnectOptions>().unwrap().busy_timeout(Duration::from_secs(20));
    Sql {
        store: Arc::new(outbox.clone()),
        with_history: Arc::new(outbox.clone().keep_published(true)),
        inspect: Arc::new(outbox),
        host: SqlitePool::connect_with(options).await.unwrap(),
        enqueue: Outbox::named(names),
        url,
        names: prefix,
        _directory: Some(directory),
    }
}

pub(crate) async fn mysql(server: Server, path: Path) -> Sql<sqlx::MySql> {
    let database = MysqlDatabase::connect(&server.url()).await.unwrap();
    let host = MySqlPool::connect(&server.url()).await.unwrap();
    mysql_over(database, host, server.url(), path).await
}

pub(crate) async fn mysql_over(
    database: MysqlDatabase,
    host: MySqlPool,
    url: String,
    path: Path,
) -> Sql<sqlx::MySql> {
    let prefix = fresh();
    let names = Names::prefix(&prefix).unwrap();
    Migration::named(database.clone(), names.clone()).run().await.unwrap();
    let outbox = MysqlOutbox::open_as(database, names.clone()).await.unwrap();
    let outbox = outbox.leases_on_floor(path == Path::Floor);
    Sql {
        store: Arc::new(outbox.clone()),
        with_history: Arc::new(outbox.clone().keep_published(true)),
        inspect: Arc::new(outbox),
        host,
        enqueue: Outbox::named(names),
        url,
        names: prefix,
        _directory: None,
    }
}

pub(crate) async fn postgres(server: Server, path: Path) -> Sql<sqlx::Postgres> {
    let database = PostgresDatabase::connect(&server.url()).await.unwrap();
    postgres_over(database, server.url(), path).await
}

/// The outbox goes through the pooler, the host directly to the server behind it.
pub(crate) async fn pgbouncer(path: Path) -> Sql<sqlx::Postgres> {
    let (pooled, direct) = (Server::Pgbouncer.url_of(0), Server::Pgbouncer.url_of(1));
    let database = PostgresDatabase::connect_through(&pooled, Pooler::Transaction).await.unwrap();
    postgres_over(database, direct, path).await
}

pub(crate) async fn postgres_over(
    database: PostgresDatabase,
    direct: String,
    path: Path,
) -> Sql<sqlx::Postgres> {
    let schema = fresh();
    let names = Names::schema(&schema).unwrap();
    Migration::named(database.clone(), names.clone()).run().await.unwrap();
    let floor = SqlOutbox::open_as(database.clone(), names.clone()).await.unwrap().leases_on_floor(true);
    let fast = PostgresOutbox::open_as(database, names.clone()).await.unwrap();
    let host = PgPool::connect(&direct).await.unwrap();
    let inspect: Arc<dyn Inspect> = Arc::new(floor.clone());
    let (store, with_history): (Arc<dyn Store>, Arc<dyn Store>) = match path {
        Path::Fast => (Arc::new(fast.clone()), Arc::new(fast.keep_published(true))),
        Path::Floor => (Arc::new(floor.clone()), Arc::new(floor.keep_published(true))),
    };
    let enqueue = Outbox::named(names);
    Sql { store, with_history, inspect, host, enqueue, url: direct, names: schema, _directory: None }
}

macro_rules! store_harness {
    ($database:ty, side_by_side: $side_by_side:expr) => {
        impl StoreHarness for Sql<$database> {
            type Transaction = Host<$database>;

            fn store(&self) -> Arc<dyn Store> {
                Arc::clone(&self.store)
            }

            fn inspect(&self) -> Arc<dyn Inspect> {
                Arc::clone(&self.inspect)
            }

            fn store_with_history(&self) -> Arc<dyn Store> {
                Arc::clone(&self.with_history)
            }

            async fn begin(&self) -> Host<$database> {
                let transaction = self.host.begin().await.unwrap();
                Host { transaction, enqueue: self.enqueue.clone() }
            }

            async fn pass(&self, time: Duration) {
                tokio::time::sleep(time).await;
            }

            fn writes_side_by_side(&self) -> bool {
                $side_by_side
            }
        }

        impl HostTransaction for Host<$database> {
            async fn enqueue(&mut self, events: &[NewEvent]) -> Result<Vec<EventId>, StoreError> {
                self.enqueue.enqueue_all(&mut self.transaction, events.to_vec()).await
            }

            async fn commit(self) -> Result<(), StoreError> {
                self.transaction.commit().await.unwrap();
                Ok(())
            }

            async fn rollback(self) {
                self.transaction.rollback().await.unwrap();
            }
        }
    };
}

store_harness!(sqlx::Sqlite, side_by_side: false);
store_harness!(sqlx::MySql, side_by_side: true);
store_harness!(sqlx::Postgres, side_by_side: true);
