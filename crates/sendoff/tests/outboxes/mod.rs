//! An outbox of a test's own, under names of its own, and what a worker finds in it.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use sendoff::outbox::{Outcome, Store, Worker, WorkerConfig};
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::stores::{Migration, Names, SqlOutbox};
use sendoff::{Event, Outbox};
use sqlx::{AssertSqlSafe, Executor as _, MySqlPool, PgPool, SqlitePool};

use crate::servers::Server;

/// Every table of an outbox.
const TABLES: [&str; 8] = ["event", "lane", "worker", "parked", "dead", "published", "operation", "meta"];

/// An outbox in a database of the test servers, or in a file.
pub(crate) struct TestOutbox {
    pub(crate) url: String,
    pub(crate) names: Names,
    /// The table of events as it is written in SQL.
    pub(crate) table: String,
    pub(crate) host: Host,
    pub(crate) store: Arc<dyn Store>,
}

/// The host's own connections.
pub(crate) enum Host {
    Postgres(PgPool),
    Mysql(MySqlPool),
    Sqlite(SqlitePool, tempfile::TempDir),
}

/// None, said aloud, where the server is missing and nobody requires it.
fn url(server: Server) -> Option<String> {
    if server.is_missing() && !server.is_required() {
        eprintln!("skipped, no server: {}", server.name());
        return None;
    }
    Some(server.url())
}

fn random_name() -> String {
    format!("t{:012x}", fastrand::u64(..) >> 16)
}

impl TestOutbox {
    pub(crate) async fn postgres(server: Server) -> Option<Self> {
        Self::postgres_named(server, &format!("t_{}", random_name())).await
    }

    pub(crate) async fn postgres_named(server: Server, schema: &str) -> Option<Self> {
        let url = url(server)?;
        let database = PostgresDatabase::connect(&url).await.unwrap();
        let names = Names::schema(schema).unwrap();
        Migration::named(database.clone(), names.clone()).run().await.unwrap();
        let store = Arc::new(SqlOutbox::open_as(database, names.clone()).await.unwrap());
        let table = format!("\"{}\".event", schema.replace('"', "\"\""));
        let host = Host::Postgres(PgPool::connect(&url).await.unwrap());
        Some(Self { url, names, table, host, store })
    }

    pub(crate) async fn mysql(server: Server) -> Option<Self> {
        let url = url(server)?;
        let prefix = format!("{}_", random_name());
        let database = MysqlDatabase::connect(&url).await.unwrap();
        let names = Names::prefix(&prefix).unwrap();
        Migration::named(database.clone(), names.clone()).run().await.unwrap();
        let store = Arc::new(SqlOutbox::open_as(database, names.clone()).await.unwrap());
        let host = Host::Mysql(MySqlPool::connect(&url).await.unwrap());
        Some(Self { url, names, table: format!("{prefix}event"), host, store })
    }

    pub(crate) async fn sqlite() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}?mode=rwc", dir.path().join("outbox.db").display());
        let prefix = format!("{}_", random_name());
        let database = SqliteDatabase::connect(&url).await.unwrap();
        let names = Names::prefix(&prefix).unwrap();
        Migration::named(database.clone(), names.clone()).run().await.unwrap();
        let store = Arc::new(SqlOutbox::open_as(database, names.clone()).await.unwrap());
        let host = Host::Sqlite(SqlitePool::connect(&url).await.unwrap(), dir);
        Self { url, names, table: format!("{prefix}event"), host, store }
    }

    pub(crate) fn outbox(&self) -> Outbox {
        Outbox::named(self.names.clone())
    }

    /// One number of the database's.
    pub(crate) async fn number(&self, sql: String) -> i64 {
        let sql = AssertSqlSafe(sql);
        match &self.host {
            Host::Postgres(pool) => sqlx::query_scalar(sql).fetch_one(pool).await.unwrap(),
            Host::Mysql(pool) => sqlx::query_scalar(sql).fetch_one(pool).await.unwrap(),
            Host::Sqlite(pool, _) => sqlx::query_scalar(sql).fetch_one(pool).await.unwrap(),
        }
    }

    /// The events that stand in the table, delivered or not due.
    pub(crate) async fn rows(&self) -> i64 {
        self.number(format!("SELECT COUNT(*) FROM {}", self.table)).await
    }

    /// Delivers what is due for a target, as a relay would; in the order of positions.
    pub(crate) async fn drain(&self, target: &str) -> Vec<Event> {
        let config = WorkerConfig { target: target.to_owned(), ..WorkerConfig::default() };
        let worker = Worker::start(Arc::clone(&self.store), config).await.unwrap();
        let mut events = Vec::new();
        loop {
            let claimed = worker.claim(1_000).await.unwrap();
            if claimed.is_empty() {
                break;
            }
            let outcomes: Vec<_> =
                claimed.iter().map(|claimed| (claimed.receipt(), Outcome::Published)).collect();
            let summary = worker.settle(&outcomes).await.unwrap();
            assert_eq!(summary.applied, outcomes.len(), "{summary:?}");
            events.extend(claimed.into_iter().map(|claimed| claimed.event));
        }
        worker.stop(Duration::ZERO).await.unwrap();
        events.sort_by_key(|event| event.position);
        events
    }

    /// Runs a test on it and drops it, whatever the test found.
    pub(crate) async fn with<F: Future<Output = ()>>(&self, test: F) {
        use futures_util::FutureExt as _;
        let outcome = std::panic::AssertUnwindSafe(test).catch_unwind().await;
        match &self.host {
            Host::Postgres(pool) => {
                let schema = self.table.trim_end_matches(".event");
                let drop = format!("DROP SCHEMA {schema} CASCADE");
                pool.execute(AssertSqlSafe(drop)).await.unwrap();
            }
            Host::Mysql(pool) => {
                let prefix = self.table.trim_end_matches("event");
                for table in TABLES {
                    pool.execute(AssertSqlSafe(format!("DROP TABLE {prefix}{table}"))).await.unwrap();
                }
                // An inbox, where the test has made one.
                let inbox = format!("DROP TABLE IF EXISTS {prefix}inbox_seen, {prefix}inbox_order");
                pool.execute(AssertSqlSafe(inbox)).await.unwrap();
            }
            Host::Sqlite(pool, _) => pool.close().await,
        }
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    }
}
