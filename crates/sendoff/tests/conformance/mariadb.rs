//! What only MariaDB can be asked.

use std::time::Duration;

use libtest_mimic::Trial;
use sendoff::StoreErrorKind;
use sendoff::claim::{ClaimSpec, Claimable as _, Record, Table, Timestamp, Value, claim_portable, col, now};
use sendoff::stores::mysql::{MysqlDatabase, Topology};
use sendoff::testkit::{ClaimHarness as _, Shape};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::{AssertSqlSafe, Executor as _};
use uuid::Uuid;

use crate::harness::mysql::{Mysql, open};
use crate::jobs::{ids, jobs, take, take_by};
use crate::servers::Server;
use crate::trial;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    macro_rules! cases {
        ($($name:ident,)*) => {$(
            trials.push(trial(format!("mariadb::{}", stringify!($name)), Some(Server::Mariadb), $name));
        )*};
    }
    cases![
        a_locked_row_is_stepped_over,
        the_claim_is_served_by_an_index,
        a_second_claimer_is_not_blocked_by_the_first_ones_scan,
        a_lock_that_is_not_released_is_contention,
        deadlocks_never_surface,
        types_of_the_hosts_own,
        a_session_that_is_not_in_utc_is_refused,
        a_single_server_says_so,
    ];
    trials
}

async fn a_locked_row_is_stepped_over() {
    let host = open(Server::Mariadb).await;
    let (shape, table) = jobs(&host, 5).await;
    let mut transaction = host.host.begin().await.unwrap();
    let lock = format!("SELECT 1 FROM {} WHERE id = 1 FOR UPDATE", shape.table);
    transaction.execute(AssertSqlSafe(lock)).await.unwrap();
    // The lock is held until the end: whoever waited for it would wait for ever.
    let spec = take(&shape, 3);
    let claim = tokio::time::timeout(Duration::from_secs(20), table.claim(&spec));
    assert_eq!(ids(&claim.await.expect("not blocked").unwrap()), [2, 3, 4]);
    transaction.rollback().await.unwrap();
    assert_eq!(ids(&table.claim(&take(&shape, 3)).await.unwrap()), [1, 5]);
}

async fn hundred_thousand(host: &Mysql) -> Shape {
    let shape = Shape::jobs("explain");
    host.create(&shape).await;
    let fill = format!(
        "INSERT INTO {} (id, status, `rank`, attempts) SELECT seq, IF(seq % 10 = 0, 'ready', 'done'), seq, 0 \
         FROM seq_1_to_100000",
        shape.table
    );
    host.host.execute(AssertSqlSafe(fill)).await.unwrap();
    host.host.execute(AssertSqlSafe(format!("ANALYZE TABLE {}", shape.table))).await.unwrap();
    shape
}

async fn the_claim_is_served_by_an_index() {
    let host = open(Server::Mariadb).await;
    let shape = hundred_thousand(&host).await;
    let table = host.database.table::<Record>(shape.description()).await.unwrap();
    let plan = table.explain(&take(&shape, 100)).await.unwrap();
    assert!(plan.is_served_by_index(), "{}", plan.text);
    let plan = table.explain(&take_by(&shape, "attempts", 100)).await.unwrap();
    assert!(plan.sorts, "an order that no index has must be seen to sort: {}", plan.text);
    assert_eq!(table.claim(&take(&shape, 5)).await.unwrap().len(), 5, "explaining claims nothing");
}

/// InnoDB locks what it scans. The first claimer is held in the middle of its transaction, with the same lock
/// statement as ours; on a small table too, where the optimizer would rather read everything.
async fn a_second_claimer_is_not_blocked_by_the_first_ones_scan() {
    let host = open(Server::Mariadb).await;
    for shape in [hundred_thousand(&host).await, jobs(&host, 30).await.0] {
        let index: String = sqlx::query_scalar(
            "SELECT INDEX_NAME FROM information_schema.STATISTICS \
             WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? AND INDEX_NAME <> 'PRIMARY' LIMIT 1",
        )
        .bind(shape.table.to_string())
        .fetch_one(&host.host)
        .await
        .unwrap();
        let mut first = host
            .host
            .begin_with("SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION")
            .await
            .unwrap();
        let lock = format!(
            "SELECT id FROM {} AS t FORCE INDEX ({index}) WHERE t.status = 'ready' ORDER BY t.`rank` LIMIT 10 \
             FOR UPDATE SKIP LOCKED",
            shape.table
        );
        let held: Vec<i64> = sqlx::query_scalar(AssertSqlSafe(lock)).fetch_all(&mut *first).await.unwrap();
        assert_eq!(held.len(), 10);
        let table = host.database.table::<Record>(shape.description()).await.unwrap();
        let spec = take(&shape, 10);
        let claim = tokio::time::timeout(Duration::from_secs(20), table.claim(&spec));
        let claimed = ids(&claim.await.expect("not blocked").unwrap());
        assert_eq!(claimed.len(), 10, "the first one's scan has locked more than its ten rows");
        assert!(claimed.iter().all(|id| !held.contains(id)));
        first.rollback().await.unwrap();
    }
}

/// The floor waits for a locked row: a bounded time, then it says so and has changed nothing.
async fn a_lock_that_is_not_released_is_contention() {
    let host = open(Server::Mariadb).await;
    let (shape, _) = jobs(&host, 1).await;
    let options: MySqlConnectOptions = Server::Mariadb.url().parse().unwrap();
    let pool = MySqlPoolOptions::new()
        .after_connect(|connection, _| {
            Box::pin(async move { connection.execute("SET innodb_lock_wait_timeout = 1").await.map(drop) })
        })
        .connect_with(options)
        .await
        .unwrap();
    let database = MysqlDatabase::from_pool(pool).await.unwrap().patience(Duration::from_millis(1_500));
    let table = database.table::<Record>(shape.description()).await.unwrap();
    let mut transaction = host.host.begin().await.unwrap();
    let lock = format!("SELECT 1 FROM {} WHERE id = 1 FOR UPDATE", shape.table);
    transaction.execute(AssertSqlSafe(lock)).await.unwrap();
    let error = claim_portable(&table, &take(&shape, 1)).await.expect_err("contended");
    assert_eq!(error.kind(), StoreErrorKind::Contended, "{error}");
    assert!(error.to_string().contains("gave up after"), "{error}");
    transaction.rollback().await.unwrap();
    assert_eq!(table.claim(&take(&shape, 1)).await.unwrap().len(), 1);
}

/// Hosts that lock the same rows the other way round: real deadlocks, retried inside.
async fn deadlocks_never_surface() {
    let host = open(Server::Mariadb).await;
    let (shape, table) = jobs(&host, 40).await;
    let name = shape.table.to_string();
    let pool = host.host.clone();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let rival = tokio::spawn(async move {
        let mut met = 0;
        while !stopped.load(std::sync::atomic::Ordering::SeqCst) {
            let mut transaction = pool.begin().await.unwrap();
            for id in (1..=40).rev() {
                let touch = format!("UPDATE {name} SET attempts = attempts + 1 WHERE id = {id}");
                if transaction.execute(AssertSqlSafe(touch)).await.is_err() {
                    met += 1;
                    break;
                }
            }
            let _ = transaction.rollback().await;
        }
        met
    });
    let back = ClaimSpec::on_table(shape.table.clone())
        .eligible(col("status").eq("running"))
        .set("status", "ready")
        .order_by("rank")
        .build()
        .unwrap();
    for _ in 0..100 {
        table.claim(&take(&shape, 40)).await.expect("contention is not an error");
        claim_portable(&table, &back).await.expect("contention is not an error");
    }
    stop.store(true, std::sync::atomic::Ordering::SeqCst);
    println!("the rival met {} deadlocks, the claimers none", rival.await.unwrap());
}

/// An enum, MariaDB's uuid, an unsigned number, a timestamp.
async fn types_of_the_hosts_own() {
    let host = open(Server::Mariadb).await;
    let name = Shape::new("types").table.to_string();
    let ddl = format!(
        "CREATE TABLE {name} (id uuid PRIMARY KEY, state enum('ready', 'running') NOT NULL, big bigint unsigned, \
         seen timestamp(6) NULL, text_id char(36), price decimal(10, 2))"
    );
    host.host.execute(AssertSqlSafe(ddl)).await.unwrap();
    let (id, other) = (Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001), Uuid::from_u128(7));
    let fill = format!(
        "INSERT INTO {name} VALUES ('{id}', 'ready', 5, UTC_TIMESTAMP(6) - INTERVAL 1 HOUR, '{other}', 1.5)"
    );
    host.host.execute(AssertSqlSafe(fill)).await.unwrap();
    let table = host.database.table::<Record>(Table::new(&name, ["id"]).unwrap()).await.unwrap();
    let at = Timestamp::from_micros(1_700_000_000_000_001);
    let spec = |from: &str, to: &str| {
        ClaimSpec::on(&name)
            .eligible(
                col("state")
                    .eq(from)
                    .and(col("id").eq(id))
                    .and(col("text_id").eq(other))
                    .and(col("big").ge(5).and(col("seen").lt(now())).and(col("price").lt(2))),
            )
            .set("state", to)
            .set("seen", at)
            .add("big", 1)
            .build()
            .unwrap()
    };
    let claimed = table.claim(&spec("ready", "running")).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!(claimed[0].get("big"), Some(&Value::Int(6)));
    assert_eq!(claimed[0].get("seen"), Some(&Value::Timestamp(at)));
    assert_eq!(claim_portable(&table, &spec("running", "ready")).await.unwrap().len(), 1);
}

async fn a_session_that_is_not_in_utc_is_refused() {
    let options: MySqlConnectOptions = Server::Mariadb.url().parse().unwrap();
    let pool = MySqlPoolOptions::new().connect_with(options.timezone("+12:45".to_owned())).await.unwrap();
    let error = MysqlDatabase::from_pool(pool).await.expect_err("refused");
    assert_eq!(error.kind(), StoreErrorKind::Schema);
    assert!(error.to_string().contains("time_zone='+00:00'"), "{error}");
}

async fn a_single_server_says_so() {
    let host = open(Server::Mariadb).await;
    assert_eq!(host.database.server().topology(), &Topology::Single);
    assert!(host.database.server().version().contains("MariaDB"));
    assert_eq!(host.database.server().topology().warning(), None);
    // What a developer prints while looking for something else.
    let (_, table) = jobs(&host, 1).await;
    let shown = format!("{:?} {table:?}", host.database);
    assert!(!shown.contains("sendoff-test"), "a password is shown: {shown}");
}
