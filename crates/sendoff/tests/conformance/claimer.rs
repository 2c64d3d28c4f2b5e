//! This program as a child process: one claimer of a race, or a host that inserts.

use std::io::BufRead as _;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sendoff::claim::{ClaimSpec, Claimable, Record, Table, TableName, Value, col, now, now_plus};
use sendoff::stores::mysql::MysqlDatabase;
use sendoff::stores::postgres::PostgresDatabase;
use sendoff::stores::sqlite::SqliteDatabase;
use sendoff::testkit::{Claimer, Floor, drain};
use serde::{Deserialize, Serialize};
use sqlx::mysql::MySqlDatabaseError;
use sqlx::{AssertSqlSafe, MySqlPool, PgPool, SqlitePool};

const VARIABLE: &str = "SENDOFF_TEST_CLAIMER";

/// What the child is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub url: String,
    pub table: String,
    pub owner: String,
    pub work: Work,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Work {
    /// Claim until nothing is ready.
    Drain { batch: u32, floor: bool },
    /// Claim and settle until so many rows of the table have come and gone.
    DrainAndDelete { batch: u32 },
    /// Insert ready rows with these ids, as a host does, some at a time.
    Insert { from: i64, to: i64 },
    /// One claim of leases that are free by the database's clock.
    Lease { seconds: u64 },
}

/// What the child has to say.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    pub owner: String,
    pub ids: Vec<i64>,
    /// Deadlocks and lock timeouts that a host's own statement met.
    pub host_conflicts: u64,
    /// What the child's clock says, in seconds.
    pub clock: u64,
}

pub(crate) fn is_wanted() -> bool {
    std::env::var_os(VARIABLE).is_some()
}

/// A child process with these orders, waiting for a line on its standard input.
pub(crate) fn command(orders: &Orders) -> tokio::process::Command {
    let mut command = tokio::process::Command::new(std::env::current_exe().unwrap());
    command
        .env(VARIABLE, serde_json::to_string(orders).unwrap())
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true);
    command
}

pub(crate) fn run() -> ExitCode {
    let orders: Orders = serde_json::from_str(&std::env::var(VARIABLE).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let report = runtime.block_on(work(orders));
    println!("{}", serde_json::to_string(&report).unwrap());
    ExitCode::SUCCESS
}

/// All children start together: each says it is ready, and waits for the word.
fn wait_for_start() {
    println!("ready");
    std::io::stdin().lock().lines().next().unwrap().unwrap();
}

async fn work(orders: Orders) -> Report {
    let name = TableName::bare(&orders.table).unwrap();
    let description = Table::named(name.clone(), ["id"]).unwrap();
    let (ids, host_conflicts) = match (&orders.work, orders.url.split(':').next().unwrap()) {
        (Work::Insert { from, to }, "mysql") => {
            let host = MySqlPool::connect(&orders.url).await.unwrap();
            wait_for_start();
            (Vec::new(), insert(&host, &orders.table, *from, *to).await)
        }
        (Work::DrainAndDelete { batch }, "mysql") => {
            let table = MysqlDatabase::connect(&orders.url).await.unwrap().table(description).await.unwrap();
            let host = MySqlPool::connect(&orders.url).await.unwrap();
            wait_for_start();
            (drain_and_delete(&table, &host, &orders, &name, *batch).await, 0)
        }
        (_, "sqlite") => {
            let table = SqliteDatabase::connect(&orders.url).await.unwrap().table(description).await.unwrap();
            let host = SqlitePool::connect(&orders.url).await.unwrap();
            wait_for_start();
            let left = || async { scalar(sqlx::query_scalar(ready(&orders.table)).fetch_one(&host).await) };
            (claim(&table, &orders, &name, left).await, 0)
        }
        (_, "mysql") => {
            let table = MysqlDatabase::connect(&orders.url).await.unwrap().table(description).await.unwrap();
            let host = MySqlPool::connect(&orders.url).await.unwrap();
            wait_for_start();
            let left = || async { scalar(sqlx::query_scalar(ready(&orders.table)).fetch_one(&host).await) };
            (claim(&table, &orders, &name, left).await, 0)
        }
        _ => {
            let table =
                PostgresDatabase::connect(&orders.url).await.unwrap().table(description).await.unwrap();
            let host = PgPool::connect(&orders.url).await.unwrap();
            wait_for_start();
            let left = || async { scalar(sqlx::query_scalar(ready(&orders.table)).fetch_one(&host).await) };
            (claim(&table, &orders, &name, left).await, 0)
        }
    };
    let clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    Report { owner: orders.owner, ids, host_conflicts, clock }
}

fn ready(table: &str) -> AssertSqlSafe<String> {
    AssertSqlSafe(format!("SELECT count(*) FROM {table} WHERE status = 'ready'"))
}

fn scalar(answer: Result<i64, sqlx::Error>) -> i64 {
    answer.unwrap()
}

async fn claim<T, Left, Leaving>(table: &T, orders: &Orders, name: &TableName, left: Left) -> Vec<i64>
where
    T: Claimable<Row = Record> + Clone,
    Left: Fn() -> Leaving,
    Leaving: Future<Output = i64>,
{
    match &orders.work {
        Work::Drain { batch, floor } => {
            let claimer = Claimer { owner: orders.owner.clone(), batch: *batch };
            let mut ids = Vec::new();
            while left().await > 0 {
                if *floor {
                    ids.extend(drain(&Floor(table.clone()), name, &claimer, |got| got == 0).await);
                } else {
                    ids.extend(drain(table, name, &claimer, |got| got == 0).await);
                }
            }
            ids
        }
        Work::Lease { seconds } => {
            let spec = ClaimSpec::on_table(name.clone())
                .eligible(col("lease_until").is_null().or(col("lease_until").lt(now())))
                .set("lease_until", now_plus(Duration::from_secs(*seconds)))
                .set("owner", orders.owner.as_str())
                .order_by("id")
                .build()
                .unwrap();
            table.claim(&spec).await.unwrap().iter().map(id).collect()
        }
        other => panic!("not on this store: {other:?}"),
    }
}

fn id(row: &Record) -> i64 {
    match row.get("id") {
        Some(Value::Int(id)) => *id,
        other => panic!("id is {other:?}"),
    }
}

/// Takes and deletes until the host says that no more will come: a row with the id 0.
async fn drain_and_delete<T: Claimable<Row = Record>>(
    table: &T,
    host: &MySqlPool,
    orders: &Orders,
    name: &TableName,
    batch: u32,
) -> Vec<i64> {
    let spec = ClaimSpec::on_table(name.clone())
        .eligible(col("status").eq("ready"))
        .set("status", "taken")
        .set("owner", orders.owner.as_str())
        .add("attempts", 1)
        .order_by("rank")
        .limit(batch)
        .build()
        .unwrap();
    let mut ids = Vec::new();
    loop {
        let claimed = table.claim(&spec).await.unwrap();
        if claimed.is_empty() {
            let over: i64 = sqlx::query_scalar(AssertSqlSafe(format!(
                "SELECT EXISTS (SELECT 1 FROM {0} WHERE id = 0) AND NOT EXISTS (SELECT 1 FROM {0} WHERE status = 'ready')",
                orders.table
            )))
            .fetch_one(host)
            .await
            .unwrap();
            if over == 1 {
                return ids;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
            continue;
        }
        let mut taken: Vec<i64> = claimed.iter().map(id).collect();
        ids.extend(&taken);
        taken.sort_unstable();
        delete(host, &orders.table, &taken).await;
    }
}

/// Settles as design and measurement want it: READ COMMITTED, by primary key, ascending.
async fn delete(host: &MySqlPool, table: &str, ids: &[i64]) {
    let marks = vec!["?"; ids.len()].join(", ");
    let mut transaction =
        host.begin_with("SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION").await.unwrap();
    let sql = format!("DELETE t FROM {table} AS t FORCE INDEX (PRIMARY) WHERE t.id IN ({marks})");
    let mut query = sqlx::query(AssertSqlSafe(sql));
    for id in ids {
        query = query.bind(id);
    }
    let deleted = query.execute(&mut *transaction).await.unwrap().rows_affected();
    assert_eq!(deleted, ids.len() as u64);
    transaction.commit().await.unwrap();
}

/// Inserts at the server's default isolation; counts the conflicts that this met.
async fn insert(host: &MySqlPool, table: &str, from: i64, to: i64) -> u64 {
    let mut conflicts = 0;
    let ids: Vec<i64> = (from..to).collect();
    for chunk in ids.chunks(20) {
        let rows = vec!["(?, 'ready', 0, ?)"; chunk.len()].join(", ");
        let sql = format!("INSERT INTO {table} (id, status, attempts, `rank`) VALUES {rows}");
        loop {
            let mut query = sqlx::query(AssertSqlSafe(sql.clone()));
            for id in chunk {
                query = query.bind(id).bind(id);
            }
            match query.execute(host).await {
                Ok(_) => break,
                Err(error) => {
                    let number = error
                        .as_database_error()
                        .and_then(|error| error.try_downcast_ref::<MySqlDatabaseError>())
                        .map(MySqlDatabaseError::number);
                    assert!(matches!(number, Some(1205 | 1213)), "{error}");
                    conflicts += 1;
                }
            }
        }
    }
    conflicts
}
