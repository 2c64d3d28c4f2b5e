//! Databases whose sessions begin with a stricter isolation level than READ COMMITTED.

use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use sendoff::outbox::{Cancelled, Inspect, Outcome, Worker, WorkerConfig};
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::{Pooler, PostgresDatabase};
use sendoff::testkit::{HostTransaction as _, StoreHarness};
use sendoff::{EventId, NewEvent};
use sqlx::mysql::MySqlPoolOptions;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _, MySqlPool, PgConnection, PgPool, Row as _};

use crate::harness::outbox::{Path, Sql, mysql_over, postgres_over};
use crate::servers::Server;
use crate::{adopted, harness, store_suite, task_suite, trial};

/// Only a broken promise takes so long.
const PATIENCE: Duration = Duration::from_secs(20);

/// A level that sessions begin with.
#[derive(Debug, Clone, Copy)]
enum Level {
    RepeatableRead,
    Serializable,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::RepeatableRead => "repeatable_read",
            Self::Serializable => "serializable",
        }
    }

    fn sql(self) -> &'static str {
        match self {
            Self::RepeatableRead => "REPEATABLE READ",
            Self::Serializable => "SERIALIZABLE",
        }
    }
}

/// Whose sessions the statements of the outbox run in.
#[derive(Debug, Clone, Copy)]
enum Sessions {
    Own,
    OfHost,
    OfPooler,
}

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = suites();
    for level in [Level::RepeatableRead, Level::Serializable] {
        let mut case = |server: Server, whose: &str, run: Box<dyn FnOnce() -> Case + Send>| {
            let case = "a_key_goes_on_when_its_head_is_cancelled_during_a_settlement";
            let name = format!("{}::{}::{whose}::{case}", server.name(), level.name());
            trials.push(trial(name, Some(server), move || async move { run().await }));
        };
        for server in [Server::Postgres15, Server::Postgres18] {
            case(server, "own", Box::new(move || Box::pin(cancelled_postgres(server, level, Sessions::Own))));
            case(
                server,
                "host",
                Box::new(move || Box::pin(cancelled_postgres(server, level, Sessions::OfHost))),
            );
        }
        let pooled = move || cancelled_postgres(Server::Pgbouncer, level, Sessions::OfPooler);
        case(Server::Pgbouncer, "pooler", Box::new(move || Box::pin(pooled())));
        case(Server::Mariadb, "host", Box::new(move || Box::pin(cancelled_mysql(level))));
    }
    trials
}

type Case = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// The suites, each where one of the levels is the default.
fn suites() -> Vec<Trial> {
    let mut trials = Vec::new();
    let (server, level) = (Server::Postgres18, Level::Serializable);
    let own = move || async move { postgres(server, level, Sessions::Own).await };
    store_suite(&mut trials, "postgres18::serializable", Some(server), own);
    let tasks = move || async move {
        let url = database(server, level).await;
        let database = PostgresDatabase::connect(&url).await.unwrap();
        harness::tasks::postgres_over(database, url, Path::Fast).await
    };
    task_suite(&mut trials, "postgres18::serializable", Some(server), tasks);
    trials.extend(adopted::contended("postgres18::serializable", server, move || database(server, level)));
    let (server, level) = (Server::Postgres15, Level::RepeatableRead);
    let of_host = move || async move { postgres(server, level, Sessions::OfHost).await };
    store_suite(&mut trials, "postgres15::repeatable_read", Some(server), of_host);
    let mariadb = || async { mysql(Level::Serializable).await };
    store_suite(&mut trials, "mariadb::serializable", Some(Server::Mariadb), mariadb);
    let tasks = || async {
        let pool = mysql_pool(Level::Serializable).await;
        let database = MysqlDatabase::from_pool(pool.clone()).await.unwrap();
        harness::tasks::mysql_over(database, pool, Server::Mariadb.url()).await
    };
    task_suite(&mut trials, "mariadb::serializable", Some(Server::Mariadb), tasks);
    trials
}

/// The address of a database of the server whose sessions begin with this level. It is made once.
async fn database(server: Server, level: Level) -> String {
    let direct = if server == Server::Pgbouncer { server.url_of(1) } else { server.url() };
    let name = format!("sendoff_{}", level.name());
    let mut connection = PgConnection::connect(&direct).await.unwrap();
    // Others make it at the same time.
    connection.execute("SELECT pg_advisory_lock(hashtextextended('sendoff isolation', 0))").await.unwrap();
    let known = sqlx::query("SELECT 1 FROM pg_database WHERE datname = $1").bind(&name);
    if known.fetch_optional(&mut connection).await.unwrap().is_none() {
        connection.execute(AssertSqlSafe(format!("CREATE DATABASE {name}"))).await.unwrap();
    }
    let set = format!(
        "ALTER DATABASE {name} SET default_transaction_isolation = '{}'",
        level.sql().to_ascii_lowercase()
    );
    connection.execute(AssertSqlSafe(set)).await.unwrap();
    connection.close().await.unwrap();
    in_database(&direct, &name)
}

/// The same address with another database.
fn in_database(url: &str, name: &str) -> String {
    let (server, rest) = url.rsplit_once('/').expect("an address names a database");
    let query = rest.split_once('?').map_or(String::new(), |(_, query)| format!("?{query}"));
    format!("{server}/{name}{query}")
}

async fn postgres(server: Server, level: Level, sessions: Sessions) -> Sql<sqlx::Postgres> {
    let url = database(server, level).await;
    let database = match sessions {
        Sessions::Own => PostgresDatabase::connect(&url).await,
        Sessions::OfHost => {
            let pool = PgPool::connect(&url).await.unwrap();
            PostgresDatabase::from_pool(pool, Pooler::None).await
        }
        Sessions::OfPooler => {
            let pooled = in_database(&server.url(), &format!("sendoff_{}", level.name()));
            PostgresDatabase::connect_through(&pooled, Pooler::Transaction).await
        }
    };
    let harness = postgres_over(database.unwrap(), url, Path::Fast).await;
    let default = sqlx::query("SHOW default_transaction_isolation").fetch_one(&harness.host).await.unwrap();
    assert_eq!(default.get::<String, _>(0), level.sql().to_ascii_lowercase(), "the host's sessions have it");
    harness
}

async fn mysql_pool(level: Level) -> MySqlPool {
    let set = format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", level.sql());
    let options = MySqlPoolOptions::new().after_connect(move |connection, _| {
        let set = set.clone();
        Box::pin(async move { connection.execute(AssertSqlSafe(set)).await.map(drop) })
    });
    options.connect(&Server::Mariadb.url()).await.unwrap()
}

async fn mysql(level: Level) -> Sql<sqlx::MySql> {
    let pool = mysql_pool(level).await;
    let database = MysqlDatabase::from_pool(pool.clone()).await.unwrap();
    mysql_over(database, pool, Server::Mariadb.url(), Path::Fast).await
}

async fn cancelled_postgres(server: Server, level: Level, sessions: Sessions) {
    let harness = postgres(server, level, sessions).await;
    let mut lock = harness.host.begin().await.unwrap();
    let operations = format!("LOCK TABLE \"{}\".operation IN EXCLUSIVE MODE", harness.names);
    lock.execute(AssertSqlSafe(operations)).await.unwrap();
    let waiting = |what: &str| {
        let names = &harness.names;
        format!(
            "SELECT COUNT(*) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0 \
             AND query LIKE '%{names}%{what}%'"
        )
    };
    let host = harness.host.clone();
    let is_so = move |sql: String| {
        let host = host.clone();
        async move { sqlx::query_scalar::<_, i64>(AssertSqlSafe(sql)).fetch_one(&host).await.unwrap() > 0 }
    };
    let waits = [waiting("operation"), waiting("settle")];
    cancelled_during_a_settlement(&harness, waits, is_so, async { lock.commit().await.unwrap() }).await;
    let drop = format!("DROP SCHEMA \"{}\" CASCADE", harness.names);
    harness.host.execute(AssertSqlSafe(drop)).await.unwrap();
}

async fn cancelled_mysql(level: Level) {
    let harness = mysql(level).await;
    let mut lock = harness.host.acquire().await.unwrap();
    lock.execute(AssertSqlSafe(format!("LOCK TABLES {}operation READ", harness.names))).await.unwrap();
    let recorded = format!(
        "SELECT COUNT(*) FROM information_schema.processlist \
         WHERE state LIKE 'Waiting for table%' AND info LIKE 'INSERT%{}operation%'",
        harness.names
    );
    // A prepared statement that waits for a row lock is not always among the transactions that are said to wait.
    let fenced = format!(
        "SELECT COUNT(*) FROM information_schema.processlist \
         WHERE command = 'Execute' AND time_ms > 300 AND info LIKE 'SELECT%{}lane%FOR UPDATE%'",
        harness.names
    );
    let host = harness.host.clone();
    let is_so = move |sql: String| {
        let host = host.clone();
        async move { sqlx::query_scalar::<_, i64>(AssertSqlSafe(sql)).fetch_one(&host).await.unwrap() > 0 }
    };
    let unlock = async { lock.execute("UNLOCK TABLES").await.map(drop).unwrap() };
    cancelled_during_a_settlement(&harness, [recorded, fenced], is_so, unlock).await;
}

/// The head of a key is cancelled while the next event is being parked behind it. The operator's transaction has the lane and waits to be recorded;
/// the worker's waits for the lane, and must see afterwards that the head is gone.
async fn cancelled_during_a_settlement<H, Answer>(
    harness: &H,
    [is_recorded_late, is_fenced]: [String; 2],
    is_so: impl Fn(String) -> Answer,
    unlock: impl Future<Output = ()>,
) where
    H: StoreHarness,
    Answer: Future<Output = bool>,
{
    let head = enqueue(harness, "head").await;
    let worker = std::sync::Arc::new(Worker::start(harness.store(), WorkerConfig::default()).await.unwrap());
    let claimed = claim(&worker).await;
    let retry = Outcome::retry(Duration::from_secs(3_600), "no");
    worker.settle(&[(claimed, retry)]).await.unwrap();
    enqueue(harness, "next").await;

    let inspect = harness.inspect();
    let cancelling = tokio::spawn(async move { Inspect::cancel(&*inspect, head, "test").await.unwrap() });
    until("the cancelling transaction waits to be recorded", || is_so(is_recorded_late.clone())).await;
    let settling = tokio::spawn({
        let worker = std::sync::Arc::clone(&worker);
        async move { worker.claim(10).await.unwrap() }
    });
    until("the settlement waits for the lane", || is_so(is_fenced.clone())).await;
    unlock.await;
    assert_eq!(cancelling.await.unwrap(), Cancelled::Yes);
    let handed = settling.await.unwrap();
    assert!(handed.is_empty(), "the head was there when the next event was read");
    claim(&worker).await;
    worker.stop(Duration::ZERO).await.unwrap();
}

async fn enqueue<H: StoreHarness>(harness: &H, text: &str) -> EventId {
    let mut transaction = harness.begin().await;
    let event = NewEvent::new("isolation").key("k").payload(text);
    let ids = transaction.enqueue(&[event]).await.unwrap();
    transaction.commit().await.unwrap();
    ids[0]
}

/// The one event that is due.
async fn claim(worker: &Worker) -> sendoff::outbox::Receipt {
    let began = Instant::now();
    loop {
        if let Some(claimed) = worker.claim(10).await.unwrap().first() {
            return claimed.receipt();
        }
        assert!(began.elapsed() < PATIENCE, "the key's event is not handed out");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn until<Answer: Future<Output = bool>>(promise: &str, is_so: impl Fn() -> Answer) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "not within {PATIENCE:?}: {promise}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
